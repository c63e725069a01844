/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The identifiers of levels in a generation. */
#ifndef TOLLGATE_LEVEL_NUMBER_H
#define TOLLGATE_LEVEL_NUMBER_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "state.h"
#include "tables.h"

struct tg_level_search {
	struct tg_generation *generation;
	const struct tg_level *level;
	__u32 found;
};

static long tg_level_same(__u32 number, struct tg_level_search *search)
{
	if (!(tg_relation(tg_level(&search->generation->levels, number), search->level) >> TG_EQ &
	      1))
		return 0;
	search->found = number;
	return 1;
}

/* The identifier of a level; TG_NO_LEVEL: it has none. */
TG_FUNCTION __u32 tg_find_level(struct tg_generation *generation, const struct tg_level *level)
{
	struct tg_level_search search = {generation, level, TG_NO_LEVEL};

	if (!generation || !level)
		return TG_NO_LEVEL;
	bpf_loop(READ_ONCE(generation->last_level) + 1, tg_level_same, &search, 0);
	return search.found;
}

/* Likewise. A level without an identifier is given one. TG_NO_LEVEL: none is left. */
TG_FUNCTION __u32 tg_level_number(struct tg_generation *generation, const struct tg_level *level)
{
	if (!generation || !level)
		return TG_NO_LEVEL;
	__u32 last = READ_ONCE(generation->last_level), known = tg_find_level(generation, level);

	if (known != TG_NO_LEVEL)
		return known;
	last = last < TG_LEVELS - 1 ? __sync_fetch_and_add(&generation->last_level, 1) + 1
				    : TG_LEVELS;
	if (last >= TG_LEVELS) {
		tg_failed(TG_FAILED_LEVELS_FULL);
		return TG_NO_LEVEL;
	}
	generation->levels.level[last & (TG_LEVELS - 1)] = *level;
	return last;
}

#endif
