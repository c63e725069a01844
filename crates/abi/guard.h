/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard: which program may make which critical call with which arguments (docs/adr/0023).
 * The database is one hash map, from struct tg_guard_key to struct tg_guard_entry. This header
 * has both, and the evaluator, for the BPF programs and for the host. Who wants the evaluator
 * defines
 *
 *   TG_GUARD_MAP               the type of what is looked up in
 *   TG_GUARD_FIND(map, key)    the entry with a key, or a null pointer
 *
 * All numbers are in the kernel's byte order.
 */
#ifndef TOLLGATE_GUARD_H
#define TOLLGATE_GUARD_H

#include <linux/types.h>

enum tg_guard_call {
	TG_GUARD_EXEC = 1,
	TG_GUARD_SETUID, /* a user id that the process did not have */
	TG_GUARD_CHMOD,	 /* a file gets set-user-id or set-group-id bits, or is made with them */
	TG_GUARD_CALLS,
};

enum tg_guard_mode {
	TG_GUARD_OFF,
	TG_GUARD_LEARN,
	TG_GUARD_WARN,
	TG_GUARD_ENFORCE,
	TG_GUARD_MODES
};

/* Why a process is guarded. */
enum tg_guard_class { TG_GUARD_BY_SETUID = 1, TG_GUARD_BY_DAEMON, TG_GUARD_CLASSES };

#define TG_GUARD_DIGEST 32u	    /* bytes of SHA-256 */
#define TG_GUARD_ANY_ID 0xffffffffu /* in a rule: any user id; no user has this one */

/* Values of TG_GUARD_CHMOD: bits of a mode. */
#define TG_GUARD_SET_USER 04000u
#define TG_GUARD_SET_GROUP 02000u

enum tg_guard_kind {
	TG_GUARD_PROGRAM = 1, /* words: its digest */
	TG_GUARD_RULE,	      /* words: number of the caller, call, value */
	TG_GUARD_DEFAULT,     /* words: class */
};
#define TG_GUARD_WORDS 8u
struct tg_guard_key {
	__u32 kind;
	__u32 words[TG_GUARD_WORDS];
};

struct tg_guard_entry {
	__u32 number; /* of the program, from 1 */
	__u32 mode;   /* of the program, or of programs without an entry */
	__u32 flags;  /* of the rule */
};
#define TG_GUARD_FREE 1u /* what is executed is not guarded any more */

struct tg_guard_question {
	__u32 class;
	__u32 call;
	__u32 value;		      /* user id, or bits; of an exec it is not used */
	__u32 caller[TG_GUARD_WORDS]; /* digests; zeros: the content is not known */
	__u32 target[TG_GUARD_WORDS]; /* of what is executed */
};

struct tg_guard_answer {
	__u32 mode;
	__u32 caller, target; /* numbers of programs; 0: the database lacks it */
	__u32 allowed;	      /* by rules */
	__u32 flags;	      /* of the rule, if there is one */
};

#ifdef TG_GUARD_MAP

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

#endif
