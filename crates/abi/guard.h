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
	TG_GUARD_SETGID, /* a group id that the process did not have */
	/* Calls whose argument is a path. */
	TG_GUARD_WRITE, /* opens a file or a block device for writing, or truncates it */
	TG_GUARD_UNLINK,
	TG_GUARD_RENAME, /* both paths */
	TG_GUARD_LINK,	 /* both paths */
	TG_GUARD_SYMLINK,
	TG_GUARD_MKNOD, /* devices, sockets and FIFOs */
	TG_GUARD_CHOWN,
	/* Calls without an argument. */
	TG_GUARD_GROUPS, /* sets supplementary groups */
	TG_GUARD_CAPSET, /* adds a capability for programs to inherit */
	TG_GUARD_SETCAP, /* gives a file capabilities */
	TG_GUARD_MOUNT,	 /* mounts, moves or unmounts a file system, or changes the root */
	TG_GUARD_MODULE, /* gives the kernel code: modules, kexec */
	TG_GUARD_BPF,	 /* bpf(2) */
	TG_GUARD_PTRACE, /* attaches to another process */
	TG_GUARD_URING,	 /* io_uring with other credentials, or with a thread of the kernel */
	TG_GUARD_USERFAULTFD,
	TG_GUARD_NAMESPACE, /* makes a user namespace */
	TG_GUARD_MEMORY,    /* makes memory executable that is of no trusted file, or was written */
	TG_GUARD_ITSELF,    /* changes or ends the guard */
	TG_GUARD_CALLS,
	TG_GUARD_REGISTER = TG_GUARD_CALLS, /* no call: a program got privilege, or replaced one */
};
#define TG_GUARD_FIRST_PATH TG_GUARD_WRITE
#define TG_GUARD_LAST_PATH TG_GUARD_CHOWN

enum tg_guard_mode {
	TG_GUARD_OFF,
	TG_GUARD_LEARN,
	TG_GUARD_WARN,
	TG_GUARD_ENFORCE,
	TG_GUARD_MODES
};

/* Why a process is guarded. */
enum tg_guard_class { TG_GUARD_BY_SETUID = 1, TG_GUARD_BY_DAEMON, TG_GUARD_CLASSES };
#define TG_GUARD_IN_DOMAIN                                                                         \
	0x100u /* flag of tg_guard_task.class: its domain has the attribute `guarded` */

#define TG_GUARD_DIGEST 32u	 /* bytes of SHA-256 */
#define TG_GUARD_ANY 0xffffffffu /* in a rule: any argument; no user has this id */

/* Values of TG_GUARD_CHMOD: bits of a mode. */
#define TG_GUARD_SET_USER 04000u
#define TG_GUARD_SET_GROUP 02000u

enum tg_guard_kind {
	TG_GUARD_PROGRAM = 1, /* words: its digest */
	TG_GUARD_RULE,	      /* words: number of the caller, call, value */
	TG_GUARD_DEFAULT,     /* words: class */
	TG_GUARD_PATH_IS,     /* words: number of the caller, call, hash of the path (2) */
	TG_GUARD_PATH_BELOW,  /* likewise, of a directory above it */
	TG_GUARD_PATH_STEM,   /* likewise, of the path without the end that mkstemp(3) makes */
};
#define TG_GUARD_WORDS 8u
struct tg_guard_key {
	__u32 kind;
	__u32 words[TG_GUARD_WORDS];
};

struct tg_guard_entry {
	__u32 number; /* of the program, from 1 */
	__u32 mode;   /* of the program, or of programs without an entry */
	__u32 flags;  /* of the rule; of a program: which rules on files it has */
};
/* Which rules on files a program has, so that no others are looked up: these bits, for each call
 * TG_GUARD_HAS more of them to the left. */
#define TG_GUARD_HAS_ANY 1u
#define TG_GUARD_HAS_PATH 2u
#define TG_GUARD_HAS_BELOW 4u
#define TG_GUARD_HAS_STEM 8u
#define TG_GUARD_HAS 4u
#define TG_GUARD_FREE 1u  /* what is executed is not guarded any more */
#define TG_GUARD_UNTIL 8u /* bit of `flags` from which on they say what ends the rule */

/* What a process has done since its exec, and what a rule may end with. */
#define TG_GUARD_NETWORK 1u   /* has received from a network */
#define TG_GUARD_UNTRUSTED 2u /* has opened a file for reading that others than root may write */
#define TG_GUARD_IDENTITY 4u  /* has changed a user id */

/* Hashes of the beginnings of a path, so that the last one is the path's. Zero: there is none;
 * paths with more components are unknown. All components that are numbers have one hash. */
#define TG_GUARD_DEPTH 16u
#define TG_GUARD_RANDOM 6u /* characters that mkstemp(3) puts at the end of a name */

struct tg_guard_question {
	__u32 class;
	__u32 call;
	__u32 value; /* an id, or bits */
	__u32 history;
	__u32 caller[TG_GUARD_WORDS]; /* its digest; zeros: the content is not known */
	__u64 path[TG_GUARD_DEPTH];
	__u64 stem;  /* of the path without TG_GUARD_RANDOM characters; 0: its name is too short */
	__u64 first; /* of `path` that is not 0 */
};

struct tg_guard_answer {
	__u32 mode;
	__u32 caller, target; /* numbers of programs; 0: the database lacks it */
	__u32 allowed;	      /* by rules */
	__u32 flags;	      /* of the rule, if there is one */
	__u32 has;	      /* rules on files that the caller has for this call */
};

/*
 * `guard_processes`, by the address of the thread group's leader. Task storage would do, but since
 * 6.18 a fork that fails frees the storage of the parent, and a busy one is not found.
 */
#define TG_GUARD_PATH                                                                              \
	128u /* bytes of a path that are kept, with its NUL; longer ones are unknown */
struct tg_guard_program_of {
	__u32 content[TG_GUARD_WORDS]; /* zeros: not known */
	char path[TG_GUARD_PATH];
};
struct tg_guard_task {
	__u32 class; /* enum tg_guard_class, TG_GUARD_IN_DOMAIN; 0: not guarded */
	__u32 flags; /* during an exec: TG_GUARD_NEXT, TG_GUARD_NEXT_FREE */
	__u32 next_class;
	__u32 history;
	struct tg_guard_program_of program;
	struct tg_guard_program_of next; /* during an exec: what is executed, or the script */
	/* What a table says of `program`: its number; its flags, and above them its mode. Both
	 * begin with the table's id, because threads may find two tables. */
	__u64 number, known;
};
#define TG_GUARD_MODE 28u     /* bit of `known` from which on it has the mode: above TG_GUARD_HAS */
#define TG_GUARD_CLASS 30u    /* and the class */
#define TG_GUARD_NEXT 1u      /* `next` is of the exec that is under way */
#define TG_GUARD_NEXT_FREE 2u /* and the rule has the word `free` */

/* `guard_own` */
struct tg_guard_own {
	__u32 is_program, id;
};

/* `guard_met`: what was learnt already. */
struct tg_guard_met {
	__u32 caller[TG_GUARD_WORDS], target[TG_GUARD_WORDS];
	__u32 call, value;
	__u64 path;
};

#define TG_GUARD_OBJECT 1024u
#define TG_GUARD_COMPONENT 256u /* room for one name, with its NUL */

/* `guard_events`: a call that no rule allows. */
struct tg_guard_event {
	__u64 time; /* nanoseconds since boot */
	__u32 call, value, mode, class;
	__u32 denied, cut, length;
	__u32 process, uid, euid, history, reserved;
	__u32 caller[TG_GUARD_WORDS], target[TG_GUARD_WORDS];
	char command[16];
	char program[TG_GUARD_PATH]; /* of the caller; empty: not known */
	/* What is executed, by its path. Of other files `length` bytes: the components of the path,
	 * the last one first, each with a NUL; `cut`: it has more. */
	char object[TG_GUARD_OBJECT];
};

#define TG_GUARD_BUCKETS 4096u

/* All global variables of the guard's programs. */
struct tg_guard_state {
	__u64 asked, denied, warned, learnt;
	__u64 lost;	     /* events for which there was no room, or that came too fast */
	__u64 storage;	     /* tasks for which there was no memory */
	__u64 second, count; /* events in this second */
	__u64 secret[2];     /* the key of the hashes of paths, which no attacker may know */
	__u32 daemons;	     /* daemons that the database lacks are guarded */
	__u32 canary;	     /* thread whose chmod u+s is always denied */
	__u32 pins;	     /* device of the file system with the pins */
	__u32 processes;     /* that are guarded */
	__u32 database[TG_GUARD_WORDS]; /* SHA-256 of the database in force; the commands set it */
	/* How many entries `guard_processes` has for the addresses of each bucket, or more: most
	 * processes are not guarded, and need no look-up. */
	__u32 entered[TG_GUARD_BUCKETS];
};

/*
 * What `guard_switch` puts in force: the table of a database, and the policy that belongs to it, if
 * there is one. Maps are descriptors of the process that runs the program.
 */
struct tg_guard_switch {
	__u32 tables, table, before; /* `guard_tables`; the next table in it, and the present one */
	__u32 daemons;		     /* tg_guard_state.daemons */
	__u32 database[TG_GUARD_WORDS];
	__u32 has_policy;
	__u32 generations, place, generation; /* a map of maps, a place in it, what comes there */
	__s32 result; /* 0, or an error number below it: nothing is changed */
};

#endif
