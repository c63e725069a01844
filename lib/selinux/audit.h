/* SPDX-License-Identifier: MIT */
#ifndef TOLLGATE_SELINUX_AUDIT_H
#define TOLLGATE_SELINUX_AUDIT_H

/* What a message begins with. */
extern const char *audit_prefix;

#endif
