/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decision tables: one generation of a SELinux policy as flat data, without pointers or text,
 * that a BPF program and the host read in the same way. Numbers are in the kernel's byte order
 * (little endian on the machines that Tollgate supports). Offsets are in bytes from the start
 * of the tables. Identifiers of users, roles, types, classes and sensitivities are libsepol's
 * and start at 1; categories start at 0.
 *
 * Rust's copy is crates/abi/src/tables.rs; a test compares the two, member by member.
 */
#ifndef TOLLGATE_TABLES_H
#define TOLLGATE_TABLES_H

#include <linux/types.h>

#define TG_MAGIC 0x42544754u /* "TGTB" */
#define TG_VERSION 2u

/* The tables are in a buffer of this size. It is a power of two, so that one mask keeps every
 * access inside: the verifier sees this, and no content can lead outside. BPF programs are compiled
 * for smaller buffers as well (crates/enforcer/build.rs), because a map's memory is the kernel's.
 */
#ifndef TG_CAPACITY
#define TG_CAPACITY (1u << 25)
#endif
#define TG_BLOCK_BITS 4u
#define TG_BLOCK (1u << TG_BLOCK_BITS)
#define TG_LEVELS 4096u /* levels that exist at one time, a power of two */
#define TG_CATEGORIES 1024u
#define TG_STEPS 256u /* the most instructions of constraint code per class */
#define TG_PROBES 32u /* slots after its own in which a key may be */
#define TG_BOUNDS 8u  /* the most parents above a bounded type */
#define TG_NAME 255u  /* the most bytes of a file name, NAME_MAX */
#define TG_NAMED 32u  /* the most source sets of a file name for one target and class */
#define TG_OBJECT_R 1u
#define TG_NO_LEVEL 0xffffffffu

struct tg_tables {
	__u8 bytes[TG_CAPACITY];
} __attribute__((aligned(8)));

/* A matrix of __u16 in blocks of TG_BLOCK columns. Most blocks of a policy are alike, so each is
 * stored once, and a row has the numbers of its blocks. The last block of a row ends in zeros. */
struct tg_folded {
	__u32 index_at; /* __u16 [rows][width] */
	__u32 width;	/* blocks per row */
	__u32 block_at; /* __u16 [blocks][TG_BLOCK] */
	__u32 blocks;
};

struct tg_header {
	__u32 magic, version;
	__u32 size;					   /* bytes in use */
	__u32 mls;					   /* 0 or 1 */
	__u32 types, classes, roles, users, sensitivities; /* the greatest identifier of each */
	__u32 rows, columns, vectors, tuples;
	__u32 type_at, class_at, role_at, user_at; /* records, [0] unused */
	__u32 sensitivity_at; /* __u32: the level with all categories that a sensitivity may have,
				 [0] unused */
	struct tg_folded matrix; /* [rows][columns]: a vector */
	struct tg_folded vector; /* [vectors][classes + 1]: a tuple */
	__u32 tuple_at;		 /* struct tg_tuple; [0] is all zero */
	__u32 code_at;		 /* struct tg_step */
	__u32 extended_at;	 /* struct tg_extended */
	__u32 key_at, key_shift; /* struct tg_entry; 1 << (64 - key_shift) slots */
	__u32 reserved;
};

/* The access vectors of a row and column (or of `self`) for one class. */
struct tg_tuple {
	__u32 allow, auditallow, dontaudit;
	__u32 extended; /* identifies its extended permissions; 0: none, the plain permission
			   decides */
};

#define TG_TYPE_PERMISSIVE 1u
#define TG_TYPE_EXISTS 2u /* a type, neither an attribute nor a gap */

struct tg_type {
	__u32 row, column;
	__u32 bounds; /* its parent; 0: none */
	__u32 flags;
	__u64 sets; /* the constraints' name sets that it is in */
	__u64 reserved;
};

#define TG_DEFAULT_SOURCE 1u
#define TG_DEFAULT_TARGET 2u
/* default_range, numbered as libsepol does */
#define TG_RANGE_SOURCE_LOW 1u
#define TG_RANGE_SOURCE_HIGH 2u
#define TG_RANGE_SOURCE_LOW_HIGH 3u
#define TG_RANGE_TARGET_LOW 4u
#define TG_RANGE_TARGET_HIGH 5u
#define TG_RANGE_TARGET_LOW_HIGH 6u
#define TG_RANGE_GLBLUB 7u

#define TG_CLASS_PROCESS                                                                           \
	1u /* or a socket: a new object is labelled like its creator, not like its container */
#define TG_CLASS_LEVELS 2u /* a constraint of it compares levels */

struct tg_class {
	__u32 code, steps;	    /* constraints: the first step, and how many */
	__u32 change, change_steps; /* validatetrans, likewise */
	__u32 role_change; /* permissions that need a role_allow if the roles differ: process
			      transition */
	__u8 default_user, default_role, default_type, default_range;
	__u32 flags;
	__u32 reserved;
};

struct tg_role {
	__u64 sets;
	__u32 types_at;	    /* bit map of types that it may have, bit = type */
	__u32 dominates_at; /* bit map of roles */
};

struct tg_user {
	__u64 sets;
	__u32 roles_at;	 /* bit map of roles */
	__u32 low, high; /* its range, level identifiers */
	__u32 reserved[3];
};

/*
 * Constraint code: a postfix expression with one bit per value. The stack is a word whose
 * lowest bit is its top. A constraint is BEGIN, its expression, END.
 */
enum tg_operation {
	TG_LEAF, /* push bit (operand & 63) of predicate word (operand >> 6) */
	TG_NOT,
	TG_AND,
	TG_OR,
	TG_BEGIN, /* jump over `operand` steps if none of `permissions` is requested */
	TG_END,	  /* remove `permissions` if the top of the stack is 0 */
};

struct tg_step {
	__u16 operation;
	__u16 operand;
	__u32 permissions;
};

/* Predicate word 0: bits of the six comparisons of levels, then of users, roles and types.
 * Words 1, 2, 3: the name sets that source, target and (in validatetrans) the task are in. */
enum tg_relation { TG_EQ, TG_NEQ, TG_DOM, TG_DOMBY, TG_INCOMP, TG_RELATIONS };
enum tg_predicate {
	TG_L1_L2 = 0,
	TG_L1_H2 = TG_RELATIONS,
	TG_H1_L2 = TG_RELATIONS * 2,
	TG_H1_H2 = TG_RELATIONS * 3,
	TG_L1_H1 = TG_RELATIONS * 4,
	TG_L2_H2 = TG_RELATIONS * 5,
	TG_U1_U2 = TG_RELATIONS * 6,
	TG_R1_R2, /* followed by TG_R1_DOM, TG_R1_DOMBY, TG_R1_INCOMP */
	TG_R1_DOM,
	TG_R1_DOMBY,
	TG_R1_INCOMP,
	TG_T1_T2,
};

struct tg_predicates {
	__u64 word[4];
};

/* Extended permissions: one driver (ioctl: the command's second byte) of one `tg_tuple.extended`.
 */
struct tg_extended {
	__u64 allow[4], auditallow[4], dontaudit[4]; /* bit = function, the command's lowest byte */
	__u64 reserved[4];
};

/* The entries of the hash table with open addressing. Key 0 is a free slot. */
enum tg_kind {
	TG_SELF = 1,   /* type, 0, class -> tuple: rules for a source and target of the same type */
	TG_TRANSITION, /* source type, target type, class -> type */
	TG_MEMBER,     /* likewise */
	TG_CHANGE,     /* likewise */
	TG_RANGE,      /* source type, target type, class -> low level | high level << 32 */
	TG_ROLE,       /* role, target type, class -> role */
	TG_ROLE_ALLOW, /* role, role, 0 -> 1 */
	TG_NAMED_AT,  /* file name, target type, class -> offset of struct tg_named | count << 32 */
	TG_DRIVER,    /* tuple's `extended`, driver, 0 -> index of struct tg_extended */
	TG_NAME_HASH, /* hash of a file name, 48 bits -> offset of its text (length, bytes) | file
			 name << 32 */
};

struct tg_entry {
	__u64 key; /* kind << 48 | a << 32 | b << 16 | c */
	__u64 value;
};

struct tg_named {
	__u32 types_at; /* bit map of source types */
	__u32 type;	/* the type of the new object */
};

/* Levels, interned: equal levels have equal identifiers. The policy's own levels come first. */
struct tg_level {
	__u64 categories[TG_CATEGORIES / 64];
	__u32 sensitivity, reserved;
};

struct tg_levels {
	struct tg_level level[TG_LEVELS];
};

struct tg_context {
	__u16 user, role;
	__u32 type;
	__u32 low, high;
};

enum tg_ask { TG_ASK_TRANSITION, TG_ASK_MEMBER, TG_ASK_CHANGE };

struct tg_question {
	struct tg_context source,
		target;		/* validatetrans: the old and the new context of the object */
	struct tg_context task; /* validatetrans only */
	__u32 class;
	__u32 ask; /* enum tg_ask, labelling decisions only */
};

struct tg_decision {
	__u32 allowed, auditallow, auditdeny;
	__u32 permissive;	       /* whether the source type is permissive */
	__u32 extended, extended_self; /* the tuples' extended permissions; 0 both: none */
};

/* A new object's context. A level without an identifier has TG_NO_LEVEL here, and its value in
 * `level`. */
struct tg_label {
	struct tg_context context;
	struct tg_level level[2];
};

struct tg_name {
	__u32 length; /* 0: no name */
	__u8 text[TG_NAME + 1];
};

#endif
