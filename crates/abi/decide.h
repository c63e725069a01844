/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The security server's decisions, computed from decision tables (tables.h) in the same way as
 * the kernel's SELinux computes them from a policy (security/selinux/ss/services.c, mls.c).
 * The same text is compiled for BPF and for the host. It uses neither maps nor helpers.
 *
 * In BPF each TG_FUNCTION is a global function: the verifier examines it once, and not once
 * per call. That is also why they test their pointers, and why none has more than five
 * arguments. Every access to the tables is masked (TG_AT), and every loop has a constant
 * bound: corrupt tables give wrong answers, but never an access outside of them.
 */
#ifndef TOLLGATE_DECIDE_H
#define TOLLGATE_DECIDE_H

#include "tables.h"

#ifdef __bpf__
#define TG_FUNCTION __attribute__((noinline))
#define TG_INLINE static __attribute__((always_inline))
#define TG_UNROLL _Pragma("clang loop unroll(full)")
#define TG_ROLL _Pragma("clang loop unroll(disable)") /* for its stack */
#else
#define TG_FUNCTION static inline
#define TG_INLINE static inline
#define TG_UNROLL
#define TG_ROLL
#endif

/* An element of the tables. Its size must be a power of two, and `at` a multiple of it. */
#define TG_AT(tables, kind, at, index)                                                             \
	((const kind *)((tables)->bytes + (((at) + (__u32)(index) * (__u32)sizeof(kind)) &         \
					   (TG_CAPACITY - sizeof(kind)))))

TG_INLINE const struct tg_header *tg_header(const struct tg_tables *tables)
{
	return (const struct tg_header *)tables->bytes;
}

TG_INLINE const struct tg_type *tg_type(const struct tg_tables *tables, __u32 type)
{
	return TG_AT(tables, struct tg_type, tg_header(tables)->type_at, type);
}

TG_INLINE const struct tg_class *tg_class(const struct tg_tables *tables, __u32 class)
{
	return TG_AT(tables, struct tg_class, tg_header(tables)->class_at, class);
}

TG_INLINE const struct tg_level *tg_level(const struct tg_levels *levels, __u32 level)
{
	return &levels->level[level & (TG_LEVELS - 1)];
}

TG_INLINE __u32 tg_bit(const struct tg_tables *tables, __u32 at, __u32 bit)
{
	return *TG_AT(tables, __u32, at, bit >> 5) >> (bit & 31) & 1;
}

TG_INLINE __u64 tg_key(enum tg_kind kind, __u32 a, __u32 b, __u32 c)
{
	return (__u64)kind << 48 | (__u64)(a & 0xffff) << 32 | (__u64)(b & 0xffff) << 16 |
	       (c & 0xffff);
}

/* A cell of a folded matrix. */
TG_INLINE __u32 tg_cell(const struct tg_tables *tables, const struct tg_folded *matrix, __u32 row,
			__u32 column)
{
	__u32 block = *TG_AT(tables, __u16, matrix->index_at,
			     row * matrix->width + (column >> TG_BLOCK_BITS));

	return *TG_AT(tables, __u16, matrix->block_at,
		      block << TG_BLOCK_BITS | (column & (TG_BLOCK - 1)));
}

/* Whether a domain is permissive: what it is denied is granted, and audited. */
TG_INLINE int tg_is_permissive(const struct tg_tables *tables, __u32 type)
{
	return tg_type(tables, type)->flags & TG_TYPE_PERMISSIVE;
}

/* Whether `key` is in the tables. If it is, its value is stored in `value`. */
TG_FUNCTION int tg_find(const struct tg_tables *tables, __u64 key, __u64 *value)
{
	if (!tables || !value)
		return 0;
	const struct tg_header *header = tg_header(tables);
	__u32 at = header->key_at, shift = header->key_shift & 63;
	__u32 slot = (__u32)(key * 0x9e3779b97f4a7c15ull >> shift);

	for (__u32 probe = 0; probe < TG_PROBES; probe++) {
		const struct tg_entry *entry = TG_AT(tables, struct tg_entry, at, slot + probe);
		__u64 found = entry->key;

		if (found == key) {
			*value = entry->value;
			return 1;
		}
		if (!found)
			break;
	}
	return 0;
}

/* One bit per relation of two levels (enum tg_relation); mls_level_dom and the like. */
TG_FUNCTION int tg_relation(const struct tg_level *a, const struct tg_level *b)
{
	if (!a || !b)
		return 0;
	__u64 only_a = 0, only_b = 0;

	TG_ROLL
	for (__u32 i = 0; i < TG_CATEGORIES / 64; i++) {
		only_a |= a->categories[i] & ~b->categories[i];
		only_b |= b->categories[i] & ~a->categories[i];
	}
	__u32 dom = a->sensitivity >= b->sensitivity && !only_b;
	__u32 domby = b->sensitivity >= a->sensitivity && !only_a;

	return (dom & domby) << TG_EQ | (__u32) !(dom & domby) << TG_NEQ | dom << TG_DOM |
	       domby << TG_DOMBY | (__u32)(!dom & !domby) << TG_INCOMP;
}

TG_INLINE __u64 tg_compared(const struct tg_levels *levels, __u32 a, __u32 b)
{
	if (a == b)
		return 1u << TG_EQ | 1u << TG_DOM | 1u << TG_DOMBY;
	return (__u32)tg_relation(tg_level(levels, a), tg_level(levels, b));
}

/* The six comparisons of levels between two contexts. */
TG_FUNCTION __u64 tg_ranges(const struct tg_levels *levels, const struct tg_context *s,
			    const struct tg_context *t)
{
	if (!levels || !s || !t)
		return 0;
	return tg_compared(levels, s->low, t->low) << TG_L1_L2 |
	       tg_compared(levels, s->low, t->high) << TG_L1_H2 |
	       tg_compared(levels, s->high, t->low) << TG_H1_L2 |
	       tg_compared(levels, s->high, t->high) << TG_H1_H2 |
	       tg_compared(levels, s->low, s->high) << TG_L1_H1 |
	       tg_compared(levels, t->low, t->high) << TG_L2_H2;
}

TG_INLINE __u64 tg_sets(const struct tg_tables *tables, const struct tg_context *context)
{
	const struct tg_header *header = tg_header(tables);

	return tg_type(tables, context->type)->sets |
	       TG_AT(tables, struct tg_role, header->role_at, context->role)->sets |
	       TG_AT(tables, struct tg_user, header->user_at, context->user)->sets;
}

/* The comparisons of users, roles and types that constraints may contain. */
TG_FUNCTION __u64 tg_identities(const struct tg_tables *tables, const struct tg_context *s,
				const struct tg_context *t)
{
	if (!tables || !s || !t)
		return 0;
	__u32 roles = tg_header(tables)->role_at;
	__u64 dom = tg_bit(tables, TG_AT(tables, struct tg_role, roles, s->role)->dominates_at,
			   t->role);
	__u64 domby = tg_bit(tables, TG_AT(tables, struct tg_role, roles, t->role)->dominates_at,
			     s->role);

	return (__u64)(s->user == t->user) << TG_U1_U2 | (__u64)(s->role == t->role) << TG_R1_R2 |
	       dom << TG_R1_DOM | domby << TG_R1_DOMBY | (__u64)(!dom & !domby) << TG_R1_INCOMP |
	       (__u64)(s->type == t->type) << TG_T1_T2;
}

/* The state of constraint code as it runs. */
struct tg_run {
	__u32 code;  /* the next step */
	__u32 stack; /* one bit per value, the lowest is the top */
	__u32 granted;
};

/* Executes one step of constraint code. */
TG_INLINE void tg_step(const struct tg_tables *tables, const struct tg_predicates *predicates,
		       struct tg_run *run)
{
	const struct tg_step *step =
		TG_AT(tables, struct tg_step, tg_header(tables)->code_at, run->code);
	__u32 operand = step->operand, stack = run->stack;

	run->code++;
	switch (step->operation) {
	case TG_LEAF:
		stack = stack << 1 | (predicates->word[operand >> 6 & 3] >> (operand & 63) & 1);
		break;
	case TG_NOT:
		stack ^= 1;
		break;
	case TG_AND:
		stack = (stack >> 1) & (stack | ~1u);
		break;
	case TG_OR:
		stack = (stack >> 1) | (stack & 1);
		break;
	case TG_BEGIN:
		if (!(run->granted & step->permissions))
			run->code += operand;
		break;
	default:
		if (!(stack & 1))
			run->granted &= ~step->permissions;
		stack = 0;
		break;
	}
	run->stack = stack;
}

#define TG_STEPS_AT_ONCE 4u

/* Executes some steps. This is a function of its own so that the verifier examines them once,
 * and not for all of TG_STEPS with every way that the steps before may have gone. */
TG_FUNCTION int tg_run_on(const struct tg_tables *tables, const struct tg_predicates *predicates,
			  struct tg_run *run, __u32 end)
{
	if (!tables || !predicates || !run)
		return 0;
	TG_ROLL
	for (__u32 step = 0; step < TG_STEPS_AT_ONCE && run->code < end; step++)
		tg_step(tables, predicates, run);
	return 0;
}

/* Runs `steps` steps of constraint code on `granted`. Returns the permissions that are left. */
TG_FUNCTION __u32 tg_constrain(const struct tg_tables *tables,
			       const struct tg_predicates *predicates, __u32 code, __u32 steps,
			       __u32 granted)
{
	if (!tables || !predicates)
		return 0;
	struct tg_run run = {.code = code, .granted = granted};

	for (__u32 step = 0; step < TG_STEPS && run.code < code + steps; step += TG_STEPS_AT_ONCE)
		tg_run_on(tables, predicates, &run, code + steps);
	return run.granted;
}

/* Finds the tuples for a question: that of its row and column, and that of `self`. */
TG_FUNCTION int tg_rules(const struct tg_tables *tables, __u32 source, __u32 target, __u32 class,
			 struct tg_decision *out)
{
	if (!tables || !out)
		return 0;
	const struct tg_header *header = tg_header(tables);
	__u32 vector = tg_cell(tables, &header->matrix, tg_type(tables, source)->row,
			       tg_type(tables, target)->column);
	__u32 tuple = tg_cell(tables, &header->vector, vector, class);
	const struct tg_tuple *av = TG_AT(tables, struct tg_tuple, header->tuple_at, tuple);
	__u64 self = 0;

	out->allowed = av->allow;
	out->auditallow = av->auditallow;
	out->auditdeny = ~av->dontaudit;
	out->extended = av->extended;
	out->extended_self = 0;
	if (source == target && tg_find(tables, tg_key(TG_SELF, source, 0, class), &self)) {
		av = TG_AT(tables, struct tg_tuple, header->tuple_at, self);
		out->allowed |= av->allow;
		out->auditallow |= av->auditallow;
		out->auditdeny &= ~av->dontaudit;
		out->extended_self = av->extended;
	}
	return 1;
}

/* Removes from `granted` what constraints and role_allow rules forbid. */
TG_FUNCTION __u32 tg_restrict(const struct tg_tables *tables, const struct tg_levels *levels,
			      const struct tg_question *question, __u32 granted)
{
	if (!tables || !levels || !question)
		return 0;
	const struct tg_context *s = &question->source, *t = &question->target;
	const struct tg_class *class = tg_class(tables, question->class);
	struct tg_predicates predicates = {};
	__u64 unused = 0;

	if (granted && class->steps) {
		predicates.word[0] = tg_identities(tables, s, t);
		if (class->flags & TG_CLASS_LEVELS)
			predicates.word[0] |= tg_ranges(levels, s, t);
		predicates.word[1] = tg_sets(tables, s);
		predicates.word[2] = tg_sets(tables, t);
		granted = tg_constrain(tables, &predicates, class->code, class->steps, granted);
	}
	if (granted & class->role_change && s->role != t->role &&
	    !tg_find(tables, tg_key(TG_ROLE_ALLOW, s->role, t->role, 0), &unused))
		granted &= ~class->role_change;
	return granted;
}

/* The part of `allowed` that the parents of a bounded source have as well. Changes the types in
 * the question. */
TG_INLINE __u32 tg_bounded(const struct tg_tables *tables, const struct tg_levels *levels,
			   struct tg_question *question, __u32 allowed)
{
	struct tg_decision above = {};

	for (__u32 parent = 0; parent < TG_BOUNDS; parent++) {
		__u32 source = tg_type(tables, question->source.type)->bounds;
		__u32 target = tg_type(tables, question->target.type)->bounds;

		if (!source || !allowed)
			break;
		question->source.type = source;
		if (target)
			question->target.type = target;
		tg_rules(tables, source, question->target.type, question->class, &above);
		allowed &= tg_restrict(tables, levels, question, above.allowed);
	}
	return allowed;
}

/*
 * context_struct_compute_av: the access vectors of a source, a target and a class. A bounded
 * type has no more permissions than its parent has on the target's parent
 * (type_attribute_bounds_av). Returns 0 if there is no such class; then nothing is allowed.
 * The question is the same afterwards as before: a copy would cost a BPF program too much
 * stack.
 */
TG_FUNCTION int tg_decide(const struct tg_tables *tables, const struct tg_levels *levels,
			  struct tg_question *question, struct tg_decision *out)
{
	if (!tables || !levels || !question || !out)
		return 0;
	__u32 source = question->source.type, target = question->target.type;

	*out = (struct tg_decision){.auditdeny = ~0u};
	if (!question->class || question->class > tg_header(tables)->classes)
		return 0;
	tg_rules(tables, source, target, question->class, out);
	out->permissive = tg_is_permissive(tables, source);
	out->allowed = tg_restrict(tables, levels, question, out->allowed);
	if (out->allowed && tg_type(tables, source)->bounds)
		out->allowed &= tg_bounded(tables, levels, question, out->allowed);
	question->source.type = source;
	question->target.type = target;
	return 1;
}

/* Adds to `out` the extended permissions that one tuple has for a driver. */
TG_FUNCTION int tg_driver(const struct tg_tables *tables, __u32 extended, __u32 driver,
			  struct tg_extended *out)
{
	__u64 index = 0;

	if (!tables || !out || !extended ||
	    !tg_find(tables, tg_key(TG_DRIVER, extended, driver, 0), &index))
		return 0;
	const struct tg_extended *found =
		TG_AT(tables, struct tg_extended, tg_header(tables)->extended_at, index);

	TG_UNROLL
	for (__u32 i = 0; i < 4; i++) {
		out->allow[i] |= found->allow[i];
		out->auditallow[i] |= found->auditallow[i];
		out->dontaudit[i] |= found->dontaudit[i];
	}
	return 1;
}

/*
 * security_compute_xperms_decision: which functions of a driver are allowed. Returns 0 if no
 * rule names extended permissions for this source, target and class. Then the plain permission
 * decides.
 */
TG_FUNCTION int tg_extend(const struct tg_tables *tables, const struct tg_decision *decision,
			  __u32 driver, struct tg_extended *out)
{
	if (!tables || !decision || !out || !(decision->extended | decision->extended_self))
		return 0;
	*out = (struct tg_extended){};
	tg_driver(tables, decision->extended, driver, out);
	tg_driver(tables, decision->extended_self, driver, out);
	return 1;
}

/* security_validate_transition: whether `task` may relabel an object from `source` to `target`. */
TG_FUNCTION int tg_validate(const struct tg_tables *tables, const struct tg_levels *levels,
			    const struct tg_question *question)
{
	if (!tables || !levels || !question || !question->class ||
	    question->class > tg_header(tables)->classes)
		return 0;
	const struct tg_class *class = tg_class(tables, question->class);
	struct tg_predicates predicates = {};

	if (!class->change_steps)
		return 1;
	predicates.word[0] = tg_identities(tables, &question->source, &question->target) |
			     tg_ranges(levels, &question->source, &question->target);
	predicates.word[1] = tg_sets(tables, &question->source);
	predicates.word[2] = tg_sets(tables, &question->target);
	predicates.word[3] = tg_sets(tables, &question->task);
	return tg_constrain(tables, &predicates, class->change, class->change_steps, 1) & 1;
}

/* mls_level_isvalid: whether the sensitivity exists, and may have these categories. */
TG_FUNCTION int tg_level_valid(const struct tg_tables *tables, const struct tg_levels *levels,
			       const struct tg_level *level)
{
	if (!tables || !levels || !level)
		return 0;
	const struct tg_header *header = tg_header(tables);
	__u32 sensitivity = level->sensitivity;

	if (!sensitivity || sensitivity > header->sensitivities)
		return 0;
	__u32 all = *TG_AT(tables, __u32, header->sensitivity_at, sensitivity);

	return tg_relation(tg_level(levels, all), level) >> TG_DOM & 1;
}

/* policydb_context_isvalid: the user has the role, the role has the type, and the user's range
 * contains low to high. */
TG_FUNCTION int tg_valid(const struct tg_tables *tables, const struct tg_levels *levels,
			 const struct tg_context *context, const struct tg_level *low,
			 const struct tg_level *high)
{
	if (!tables || !levels || !context || !low || !high)
		return 0;
	const struct tg_header *header = tg_header(tables);
	__u32 type = context->type, role = context->role, number = context->user;

	if (!type || type > header->types || !(tg_type(tables, type)->flags & TG_TYPE_EXISTS))
		return 0;
	if (!role || role > header->roles || !number || number > header->users)
		return 0;
	const struct tg_user *user = TG_AT(tables, struct tg_user, header->user_at, number);

	if (role != TG_OBJECT_R &&
	    !(tg_bit(tables, TG_AT(tables, struct tg_role, header->role_at, role)->types_at,
		     type) &&
	      tg_bit(tables, user->roles_at, role)))
		return 0;
	if (!header->mls)
		return 1;
	if (!tg_level_valid(tables, levels, low) || !tg_level_valid(tables, levels, high) ||
	    !(tg_relation(high, low) >> TG_DOM & 1))
		return 0;
	return role == TG_OBJECT_R ||
	       ((tg_relation(low, tg_level(levels, user->low)) >> TG_DOM & 1) &&
		(tg_relation(tg_level(levels, user->high), high) >> TG_DOM & 1));
}

/* mls_context_glblub: the range that two ranges have in common. Returns 0 if there is none. */
TG_FUNCTION int tg_shared_range(const struct tg_levels *levels, const struct tg_context *s,
				const struct tg_context *t, struct tg_label *out)
{
	if (!levels || !s || !t || !out)
		return 0;
	const struct tg_level *l1 = tg_level(levels, s->low), *h1 = tg_level(levels, s->high);
	const struct tg_level *l2 = tg_level(levels, t->low), *h2 = tg_level(levels, t->high);

	if (h1->sensitivity < l2->sensitivity || h2->sensitivity < l1->sensitivity)
		return 0;
	out->context.low = TG_NO_LEVEL;
	out->context.high = TG_NO_LEVEL;
	out->level[0].sensitivity =
		l1->sensitivity > l2->sensitivity ? l1->sensitivity : l2->sensitivity;
	out->level[1].sensitivity =
		h1->sensitivity < h2->sensitivity ? h1->sensitivity : h2->sensitivity;
	TG_UNROLL
	for (__u32 i = 0; i < TG_CATEGORIES / 64; i++) {
		out->level[0].categories[i] = l1->categories[i] & l2->categories[i];
		out->level[1].categories[i] = h1->categories[i] & h2->categories[i];
	}
	return 1;
}

/* mls_compute_sid: the range of the new context. */
TG_FUNCTION int tg_label_range(const struct tg_tables *tables, const struct tg_levels *levels,
			       const struct tg_question *question, struct tg_label *out)
{
	if (!tables || !levels || !question || !out)
		return 0;
	const struct tg_context *s = &question->source, *t = &question->target;
	const struct tg_class *class = tg_class(tables, question->class);
	__u64 range = 0;
	__u32 low = s->low, high = s->low;

	if (question->ask != TG_ASK_MEMBER && class->flags & TG_CLASS_PROCESS)
		high = s->high;
	if (question->ask == TG_ASK_TRANSITION) {
		if (tg_find(tables, tg_key(TG_RANGE, s->type, t->type, question->class), &range)) {
			low = (__u32)range;
			high = (__u32)(range >> 32);
		} else {
			switch (class->default_range) {
			case TG_RANGE_SOURCE_LOW:
				high = s->low;
				break;
			case TG_RANGE_SOURCE_HIGH:
				low = high = s->high;
				break;
			case TG_RANGE_SOURCE_LOW_HIGH:
				high = s->high;
				break;
			case TG_RANGE_TARGET_LOW:
				low = high = t->low;
				break;
			case TG_RANGE_TARGET_HIGH:
				low = high = t->high;
				break;
			case TG_RANGE_TARGET_LOW_HIGH:
				low = t->low;
				high = t->high;
				break;
			case TG_RANGE_GLBLUB:
				return tg_shared_range(levels, s, t, out);
			}
		}
	}
	out->context.low = low;
	out->context.high = high;
	out->level[0] = *tg_level(levels, low);
	out->level[1] = *tg_level(levels, high);
	return 1;
}

/* The hash of a file name: 48 bits of 64-bit FNV-1a. */
TG_FUNCTION __u64 tg_name_hash(const struct tg_name *name)
{
	if (!name)
		return 0;
	__u64 hash = 0xcbf29ce484222325ull;

	for (__u32 i = 0; i < TG_NAME; i++) {
		if (i >= name->length)
			break;
		hash = (hash ^ name->text[i]) * 0x100000001b3ull;
	}
	return hash >> 16;
}

/* Whether a file name equals the one stored at `at`. */
TG_FUNCTION int tg_name_equal(const struct tg_tables *tables, __u32 at, const struct tg_name *name)
{
	if (!tables || !name || *TG_AT(tables, __u8, at, 0) != name->length)
		return 0;
	for (__u32 i = 0; i < TG_NAME; i++) {
		if (i >= name->length)
			break;
		if (*TG_AT(tables, __u8, at, i + 1) != name->text[i])
			return 0;
	}
	return 1;
}

/* The number of a file name that rules mention; 0: no rule does. */
TG_FUNCTION __u32 tg_name_number(const struct tg_tables *tables, const struct tg_name *name)
{
	if (!tables || !name || !name->length || name->length > TG_NAME)
		return 0;
	__u64 key = (__u64)TG_NAME_HASH << 48 | tg_name_hash(name), found = 0;

	if (!tg_find(tables, key, &found) || !tg_name_equal(tables, (__u32)found, name))
		return 0;
	return (__u32)(found >> 32);
}

/* filename_compute_type: the type that a new object gets because of its name; 0: no rule
 * applies. */
TG_FUNCTION __u32 tg_named_type(const struct tg_tables *tables, const struct tg_question *question,
				const struct tg_name *name)
{
	if (!tables || !question || !name)
		return 0;
	__u32 number = tg_name_number(tables, name), source = question->source.type;
	__u64 found = 0;

	if (!number ||
	    !tg_find(tables, tg_key(TG_NAMED_AT, number, question->target.type, question->class),
		     &found))
		return 0;
	__u32 at = (__u32)found, count = (__u32)(found >> 32);

	for (__u32 i = 0; i < TG_NAMED; i++) {
		if (i >= count)
			break;
		const struct tg_named *named = TG_AT(tables, struct tg_named, at, i);

		if (tg_bit(tables, named->types_at, source))
			return named->type;
	}
	return 0;
}

/* The user, role and type of a new object. */
TG_FUNCTION int tg_label_identity(const struct tg_tables *tables,
				  const struct tg_question *question, const struct tg_name *name,
				  struct tg_label *out)
{
	if (!tables || !question || !out)
		return 0;
	const struct tg_context *s = &question->source, *t = &question->target;
	const struct tg_class *class = tg_class(tables, question->class);
	__u32 like_source = class->flags & TG_CLASS_PROCESS, number = question->class;
	__u32 kind = question->ask == TG_ASK_MEMBER   ? TG_MEMBER
		     : question->ask == TG_ASK_CHANGE ? TG_CHANGE
						      : TG_TRANSITION;
	__u64 found = 0;
	__u32 named = 0;

	out->context.user =
		question->ask == TG_ASK_MEMBER || class->default_user == TG_DEFAULT_TARGET
			? t->user
			: s->user;
	out->context.role = class->default_role == TG_DEFAULT_SOURCE   ? s->role
			    : class->default_role == TG_DEFAULT_TARGET ? t->role
			    : like_source			       ? s->role
								       : TG_OBJECT_R;
	out->context.type = class->default_type == TG_DEFAULT_SOURCE   ? s->type
			    : class->default_type == TG_DEFAULT_TARGET ? t->type
			    : like_source			       ? s->type
								       : t->type;
	if (tg_find(tables, tg_key(kind, s->type, t->type, number), &found))
		out->context.type = (__u32)found;
	if (name)
		named = tg_named_type(tables, question, name);
	if (named)
		out->context.type = named;
	if (question->ask == TG_ASK_TRANSITION &&
	    tg_find(tables, tg_key(TG_ROLE, s->role, t->type, number), &found))
		out->context.role = (__u16)found;
	return 1;
}

/*
 * security_compute_sid: the context of a new object, or of a process after exec. Returns 0 if
 * there is no such class or no valid context. The kernel then denies the act, except to
 * permissive domains.
 */
TG_FUNCTION int tg_compute_label(const struct tg_tables *tables, const struct tg_levels *levels,
				 const struct tg_question *question, const struct tg_name *name,
				 struct tg_label *out)
{
	if (!tables || !levels || !question || !out || !question->class ||
	    question->class > tg_header(tables)->classes)
		return 0;
	*out = (struct tg_label){};
	if (!tg_label_identity(tables, question, name, out))
		return 0;
	if (tg_header(tables)->mls && !tg_label_range(tables, levels, question, out))
		return 0;
	return tg_valid(tables, levels, &out->context, &out->level[0], &out->level[1]);
}

#endif
