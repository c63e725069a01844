/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Objects on which enforcement depends (TG_SID_SURVIVAL): what any subject may do with them. */
#ifndef TOLLGATE_SURVIVAL_OBJECT_H
#define TOLLGATE_SURVIVAL_OBJECT_H

#include "classes.h"
#include "enforcer.h"
#include "libbpf.h"
#include "request.h"

/* The permissions of a class that only look at a file. Connecting to a socket writes to its
 * name. A lock, or a watch for which others wait, could block those that keep enforcement
 * running. */
static __always_inline __u32 tg_looks(__u32 class)
{
	__u32 looks = FILE__READ | FILE__GETATTR | FILE__OPEN | FILE__AUDIT_ACCESS | FILE__WATCH |
		      FILE__WATCH_READS;

	if (class == SECCLASS_DIR)
		return looks | DIR__SEARCH;
	if (class == SECCLASS_SOCK_FILE)
		return looks | SOCK_FILE__WRITE;
	return looks | FILE__MAP | FILE__EXECUTE | FILE__EXECUTE_NO_TRANS | FILE__ENTRYPOINT;
}

/* Whether a check concerns more than looking at an object on which enforcement depends. */
static __always_inline int tg_is_survival(__u32 target, __u32 class)
{
	return target & TG_SID_SURVIVAL && tg_is_file(class);
}

#endif
