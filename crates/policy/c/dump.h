/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A binary policy as a flat stream. crates/policy/src/dump.rs reads it and describes its
 * content. */
#ifndef TOLLGATE_DUMP_H
#define TOLLGATE_DUMP_H

#include <stdio.h>

#include <sepol/policydb/policydb.h>

/* Writes `policydb`. Returns 0, or -1 with the reason in tollgate_dump_error(). */
int tollgate_dump(policydb_t *policydb, FILE *out);
const char *tollgate_dump_error(void);

#endif
