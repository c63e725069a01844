/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of the database in force. */
#ifndef TOLLGATE_GUARD_TABLE_H
#define TOLLGATE_GUARD_TABLE_H

#include "maps.h"
#include "../libbpf.h"

static __always_inline void *tg_guard_table(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&guard_tables, &zero);
}

#endif
