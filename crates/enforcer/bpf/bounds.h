/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Domains that are bounded by another domain. */
#ifndef TOLLGATE_BOUNDS_H
#define TOLLGATE_BOUNDS_H

#include "contexts.h"
#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "state.h"
#include "tables.h"

/* security_bounded_transition: returns 0 if the new domain is the old one, or bounded by it at
 * any distance; else -EPERM. */
TG_FUNCTION int tg_bounded_transition(__u32 old, __u32 new)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!generation) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return -EPERM;
	}
	__u32 from = tg_context_of(generation, old).type;
	__u32 type = tg_context_of(generation, new).type;

	if (!from || !type) {
		tg_failed(TG_FAILED_NO_CONTEXT);
		return -EPERM;
	}
	for (__u32 parent = 0; parent <= TG_BOUNDS; parent++) {
		if (type == from)
			return 0;
		type = tg_type(&generation->tables, type)->bounds;
		if (!type)
			break;
	}
	return -EPERM;
}

#endif
