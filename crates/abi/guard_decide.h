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
/* A function of its own: its key then has one place on the stack. */
#define TG_GUARD_STEP static __attribute__((noinline))
#define TG_GUARD_ROLL _Pragma("clang loop unroll(disable)")
#else
#define TG_GUARD_STEP static
#define TG_GUARD_ROLL
#endif

/* The program with a digest, or a null pointer. No program has the digest of zeros. */
TG_GUARD_STEP struct tg_guard_entry *tg_guard_program(TG_GUARD_MAP *map, const __u32 *digest)
{
	struct tg_guard_key key = {.kind = TG_GUARD_PROGRAM};

	for (__u32 i = 0; i < TG_GUARD_WORDS; i++)
		key.words[i] = digest[i];
	return TG_GUARD_FIND(map, &key);
}

/* The rule of a caller for a call with a value, if it has not ended. */
TG_GUARD_STEP struct tg_guard_entry *tg_guard_rule(TG_GUARD_MAP *map, __u32 caller, __u32 call,
						   __u32 value, __u32 history)
{
	struct tg_guard_key key = {.kind = TG_GUARD_RULE, .words = {caller, call, value}};
	struct tg_guard_entry *rule = TG_GUARD_FIND(map, &key);

	return rule && !(rule->flags >> TG_GUARD_UNTIL & history) ? rule : 0;
}

/* The same, for a path or what is below a directory. */
TG_GUARD_STEP struct tg_guard_entry *tg_guard_path_rule(TG_GUARD_MAP *map, __u32 kind, __u32 caller,
							const struct tg_guard_question *question,
							__u64 hash)
{
	struct tg_guard_key key = {.kind = kind,
				   .words = {caller, question->call, hash, hash >> 32}};
	struct tg_guard_entry *rule = hash ? TG_GUARD_FIND(map, &key) : 0;

	return rule && !(rule->flags >> TG_GUARD_UNTIL & question->history) ? rule : 0;
}

/* Looks up a path, its stem, and all directories above it. */
static inline struct tg_guard_entry *
tg_guard_any_path_rule(TG_GUARD_MAP *map, __u32 caller, const struct tg_guard_question *question)
{
	struct tg_guard_entry *rule;

	rule = tg_guard_path_rule(map, TG_GUARD_PATH_IS, caller, question,
				  question->path[TG_GUARD_DEPTH - 1]);
	if (!rule)
		rule = tg_guard_path_rule(map, TG_GUARD_PATH_STEM, caller, question,
					  question->stem);
	TG_GUARD_ROLL
	for (__u32 i = 0; !rule && i < TG_GUARD_DEPTH - 1; i++)
		rule = tg_guard_path_rule(map, TG_GUARD_PATH_BELOW, caller, question,
					  question->path[i]);
	return rule;
}

/* Whether rules allow each of the bits. */
static inline int tg_guard_allows_bits(TG_GUARD_MAP *map, __u32 caller,
				       const struct tg_guard_question *question)
{
	__u32 bits = question->value, history = question->history;

	if (bits & TG_GUARD_SET_USER &&
	    !tg_guard_rule(map, caller, TG_GUARD_CHMOD, TG_GUARD_SET_USER, history))
		return 0;
	if (bits & TG_GUARD_SET_GROUP &&
	    !tg_guard_rule(map, caller, TG_GUARD_CHMOD, TG_GUARD_SET_GROUP, history))
		return 0;
	return !(bits & ~(TG_GUARD_SET_USER | TG_GUARD_SET_GROUP));
}

static inline int tg_guard_has_path(__u32 call)
{
	return call >= TG_GUARD_FIRST_PATH && call <= TG_GUARD_LAST_PATH;
}

/* Looks up a question in the rules of a program that the database has. */
static inline void tg_guard_look_up(TG_GUARD_MAP *map, const struct tg_guard_question *question,
				    struct tg_guard_answer *answer)
{
	__u32 call = question->call, caller = answer->caller, history = question->history;
	struct tg_guard_entry *rule = 0;

	if (call == TG_GUARD_CHMOD) {
		answer->allowed = tg_guard_allows_bits(map, caller, question);
		return;
	}
	if (call == TG_GUARD_EXEC) {
		if (answer->target)
			rule = tg_guard_rule(map, caller, call, answer->target, history);
	} else {
		rule = tg_guard_rule(map, caller, call, TG_GUARD_ANY, history);
		if (!rule && tg_guard_has_path(call))
			rule = tg_guard_any_path_rule(map, caller, question);
		else if (!rule)
			rule = tg_guard_rule(map, caller, call, question->value, history);
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
