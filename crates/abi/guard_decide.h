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
/* Keeps clang from counting in another way than the one whose bounds the verifier knows. */
#define TG_GUARD_OPAQUE(x) asm volatile("" : "+r"(x))
#else
#define TG_GUARD_STEP static
#define TG_GUARD_ROLL
#define TG_GUARD_OPAQUE(x)
#endif

/* The program with a digest, or a null pointer. No program has the digest of zeros. */
TG_GUARD_STEP struct tg_guard_entry *tg_guard_program(TG_GUARD_MAP *map, const __u32 *digest)
{
	struct tg_guard_key key = {.kind = TG_GUARD_PROGRAM};

	for (__u32 i = 0; i < TG_GUARD_WORDS; i++)
		key.words[i] = digest[i];
	return TG_GUARD_FIND(map, &key);
}

/* What is said of programs that the database lacks. */
TG_GUARD_STEP struct tg_guard_entry *tg_guard_default(TG_GUARD_MAP *map, __u32 class)
{
	struct tg_guard_key key = {.kind = TG_GUARD_DEFAULT, .words = {class}};

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

/* Looks up a path, its stem, and all directories above it: what the caller has rules of. */
static inline struct tg_guard_entry *
tg_guard_any_path_rule(TG_GUARD_MAP *map, const struct tg_guard_question *question,
		       const struct tg_guard_answer *answer)
{
	__u32 caller = answer->caller, has = answer->has;
	struct tg_guard_entry *rule = 0;

	if (has & TG_GUARD_HAS_PATH)
		rule = tg_guard_path_rule(map, TG_GUARD_PATH_IS, caller, question,
					  question->path[TG_GUARD_DEPTH - 1]);
	if (!rule && has & TG_GUARD_HAS_STEM)
		rule = tg_guard_path_rule(map, TG_GUARD_PATH_STEM, caller, question,
					  question->stem);
	if (rule || !(has & TG_GUARD_HAS_BELOW))
		return rule;
	TG_GUARD_ROLL
	for (__u32 i = 0; !rule && i < TG_GUARD_DEPTH; i++) {
		__u64 at = question->first + i;

		TG_GUARD_OPAQUE(at);
		if (at >= TG_GUARD_DEPTH - 1)
			break;
		rule = tg_guard_path_rule(map, TG_GUARD_PATH_BELOW, caller, question,
					  question->path[at]);
	}
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

/* Looks up a question in the rules of a program that the database has. What is asked of files has
 * hashes by now. */
static inline void tg_guard_look_up(TG_GUARD_MAP *map, const struct tg_guard_question *question,
				    struct tg_guard_answer *answer)
{
	__u32 call = question->call, caller = answer->caller, history = question->history;
	struct tg_guard_entry *rule = 0;

	if (!caller || answer->allowed)
		return;
	if (call == TG_GUARD_CHMOD) {
		answer->allowed = tg_guard_allows_bits(map, caller, question);
		return;
	}
	if (call == TG_GUARD_EXEC) {
		if (answer->target)
			rule = tg_guard_rule(map, caller, call, answer->target, history);
	} else if (tg_guard_has_path(call)) {
		rule = tg_guard_any_path_rule(map, question, answer);
	} else {
		rule = tg_guard_rule(map, caller, call, TG_GUARD_ANY, history);
		if (!rule)
			rule = tg_guard_rule(map, caller, call, question->value, history);
	}
	if (!rule)
		return;
	answer->allowed = 1;
	answer->flags = rule->flags;
}

/* Finds what is said of the caller: number, mode, and flags. What neither the database nor its
 * defaults say is enforced, and denied. */
static inline void tg_guard_find_caller(TG_GUARD_MAP *map, const struct tg_guard_question *question,
					struct tg_guard_answer *answer)
{
	struct tg_guard_entry *found = tg_guard_program(map, question->caller);

	*answer = (struct tg_guard_answer){.mode = TG_GUARD_ENFORCE};
	if (!found)
		found = tg_guard_default(map, question->class);
	if (!found)
		return;
	answer->mode = found->mode;
	answer->caller = found->number;
	answer->flags = found->flags;
}

/* Goes on with which rules of the caller may allow a call on a file. One that needs no path is
 * looked up already. For an exec, the target is the next to be found. */
static inline void tg_guard_begin(TG_GUARD_MAP *map, const struct tg_guard_question *question,
				  struct tg_guard_answer *answer)
{
	__u32 call = question->call;

	if (answer->caller && tg_guard_has_path(call))
		answer->has = answer->flags >> TG_GUARD_HAS * (call - TG_GUARD_FIRST_PATH);
	answer->flags = 0;
	if (answer->has & TG_GUARD_HAS_ANY)
		answer->allowed = tg_guard_rule(map, answer->caller, call, TG_GUARD_ANY,
						question->history) != 0;
}

/* The number of the program with a digest; 0: the database lacks it. */
static inline __u32 tg_guard_number(TG_GUARD_MAP *map, const __u32 *digest)
{
	struct tg_guard_entry *found = tg_guard_program(map, digest);

	return found ? found->number : 0;
}

#endif
