// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The host's copy of the guard's evaluator. */
#include <linux/types.h>

struct tg_guard_key;
struct tg_guard_entry;

/* A table of Rust's, and the function by which it is looked up. */
struct tollgate_guard_map {
	const void *table;
	struct tg_guard_entry *(*find)(const void *table, const struct tg_guard_key *key);
};

#define TG_GUARD_MAP const struct tollgate_guard_map
#define TG_GUARD_FIND(map, key) ((map)->find((map)->table, key))
#include "guard_decide.h"

void tollgate_guard_decide(const struct tollgate_guard_map *map,
			   const struct tg_guard_question *question, const __u32 *target,
			   struct tg_guard_answer *answer);

void tollgate_guard_decide(const struct tollgate_guard_map *map,
			   const struct tg_guard_question *question, const __u32 *target,
			   struct tg_guard_answer *answer)
{
	tg_guard_find_caller(map, question, answer);
	tg_guard_begin(map, question, answer);
	if (question->call == TG_GUARD_EXEC)
		answer->target = tg_guard_number(map, target);
	tg_guard_look_up(map, question, answer);
}
