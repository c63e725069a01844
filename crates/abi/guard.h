/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard: which program may make which critical call with which arguments (docs/adr/0023).
 * The database is one hash map, from struct tg_guard_key to struct tg_guard_entry;
 * guard_decide.h is the evaluator. Numbers are in the kernel's byte order.
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

/* `guard_tasks`, task storage of guarded processes. */
#define TG_GUARD_PATH                                                                              \
	128u /* bytes of a path that are kept, with its NUL; longer ones are unknown */
struct tg_guard_program_of {
	__u32 content[TG_GUARD_WORDS]; /* zeros: not known */
	char path[TG_GUARD_PATH];
};
struct tg_guard_task {
	__u32 class; /* enum tg_guard_class; 0: not guarded */
	__u32 flags; /* during an exec: TG_GUARD_NEXT, TG_GUARD_NEXT_FREE */
	__u32 next_class;
	__u32 reserved;
	struct tg_guard_program_of program;
	struct tg_guard_program_of next; /* during an exec: what is executed, or the script */
};
#define TG_GUARD_NEXT 1u      /* `next` is of the exec that is under way */
#define TG_GUARD_NEXT_FREE 2u /* and the rule has the word `free` */

/* `guard_met`: what was learnt already. */
struct tg_guard_met {
	__u32 caller[TG_GUARD_WORDS], target[TG_GUARD_WORDS];
	__u32 call, value;
};

/* `guard_events`: a call that no rule allows. */
struct tg_guard_event {
	__u64 time; /* nanoseconds since boot */
	__u32 call, value, mode, class;
	__u32 denied;
	__u32 process, uid, euid;
	__u32 caller[TG_GUARD_WORDS], target[TG_GUARD_WORDS];
	char command[16];
	char program[TG_GUARD_PATH]; /* of the caller; empty: not known */
	char object[TG_GUARD_PATH];  /* what is executed, by its path; or the name of the file */
};

/* All global variables of the guard's programs. */
struct tg_guard_state {
	__u64 asked, denied, warned, learnt;
	__u64 lost;	     /* events for which there was no room, or that came too fast */
	__u64 storage;	     /* tasks for which there was no memory */
	__u64 second, count; /* events in this second */
	__u32 daemons;	     /* daemons that the database lacks are guarded */
	__u32 reserved;
	__u32 database[TG_GUARD_WORDS]; /* SHA-256 of the database in force; the commands set it */
};

#endif
