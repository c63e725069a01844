/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard's decisions, for the BPF programs and for the host. The host defines
 *
 *   TG_GUARD_MAP               the type of what is looked up in
 *   TG_GUARD_FIND(map, key)    the entry with a key, or a null pointer
 */
#ifndef TOLLGATE_GUARD_DECIDE_H
#define TOLLGATE_GUARD_DECIDE_H

#include "guard.h"

#ifdef __bpf__
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define TG_GUARD_MAP void
#define TG_GUARD_FIND(map, key) bpf_map_lookup_elem(map, key)
#endif

/* The program with a digest, or a null pointer. No program has the digest of zeros. */
static inline struct tg_guard_entry *tg_guard_program(TG_GUARD_MAP *map, const __u32 *digest)
{
	struct tg_guard_key key = {.kind = TG_GUARD_PROGRAM};

	for (__u32 i = 0; i < TG_GUARD_WORDS; i++)
		key.words[i] = digest[i];
	return TG_GUARD_FIND(map, &key);
}

static inline struct tg_guard_entry *tg_guard_rule(TG_GUARD_MAP *map, __u32 caller, __u32 call,
						   __u32 value)
{
	struct tg_guard_key key = {.kind = TG_GUARD_RULE, .words = {caller, call, value}};

	return TG_GUARD_FIND(map, &key);
}

/* Whether rules allow each of the bits. */
static inline int tg_guard_allows_bits(TG_GUARD_MAP *map, __u32 caller, __u32 bits)
{
	if (bits & TG_GUARD_SET_USER &&
	    !tg_guard_rule(map, caller, TG_GUARD_CHMOD, TG_GUARD_SET_USER))
		return 0;
	if (bits & TG_GUARD_SET_GROUP &&
	    !tg_guard_rule(map, caller, TG_GUARD_CHMOD, TG_GUARD_SET_GROUP))
		return 0;
	return !(bits & ~(TG_GUARD_SET_USER | TG_GUARD_SET_GROUP));
}

/* Looks up a question in the rules of a program that the database has. */
static inline void tg_guard_look_up(TG_GUARD_MAP *map, const struct tg_guard_question *question,
				    struct tg_guard_answer *answer)
{
	struct tg_guard_entry *rule = 0;

	switch (question->call) {
	case TG_GUARD_EXEC:
		if (answer->target)
			rule = tg_guard_rule(map, answer->caller, TG_GUARD_EXEC, answer->target);
		break;
	case TG_GUARD_SETUID:
		rule = tg_guard_rule(map, answer->caller, TG_GUARD_SETUID, question->value);
		if (!rule)
			rule = tg_guard_rule(map, answer->caller, TG_GUARD_SETUID, TG_GUARD_ANY_ID);
		break;
	case TG_GUARD_CHMOD:
		answer->allowed = tg_guard_allows_bits(map, answer->caller, question->value);
		return;
	}
	if (!rule)
		return;
	answer->allowed = 1;
	answer->flags = rule->flags;
}

/* Answers a question. What neither the database nor its defaults say is enforced, and denied. */
static inline void tg_guard_decide(TG_GUARD_MAP *map, const struct tg_guard_question *question,
				   struct tg_guard_answer *answer)
{
	struct tg_guard_key key = {.kind = TG_GUARD_DEFAULT, .words = {question->class}};
	struct tg_guard_entry *caller = tg_guard_program(map, question->caller), *found;

	*answer = (struct tg_guard_answer){.mode = TG_GUARD_ENFORCE};
	if (question->call == TG_GUARD_EXEC) {
		found = tg_guard_program(map, question->target);
		answer->target = found ? found->number : 0;
	}
	found = caller ? caller : TG_GUARD_FIND(map, &key);
	if (found)
		answer->mode = found->mode;
	if (!caller)
		return;
	answer->caller = caller->number;
	tg_guard_look_up(map, question, answer);
}

#endif
