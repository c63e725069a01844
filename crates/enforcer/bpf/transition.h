/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The SID of a new object: a file, or a process after exec (security_transition_sid). */
#ifndef TOLLGATE_TRANSITION_H
#define TOLLGATE_TRANSITION_H

#include "address.h"
#include "cache.h"
#include "compiler.h"
#include "contexts.h"
#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "level_number.h"
#include "libbpf.h"
#include "maps.h"
#include "scratch.h"
#include "state.h"
#include "tables.h"

/* Reads a struct qstr, of which TG_ADDRESS is known. 0 or an error. */
static __always_inline long tg_read_qstr(__u64 address, struct qstr *qstr)
{
	address -= TG_ADDRESS(bpf_get_current_task_btf());
	address += bpf_get_current_task();
	return bpf_core_read(qstr, sizeof *qstr, (struct qstr *)address);
}

/* Where a name is in tg_generation's `names`: by its length and its first eight bytes, which are 0
 * behind its end. */
static __always_inline __u32 tg_name_place(__u64 first, __u32 length)
{
	return ((first ^ length) * 0x9e3779b97f4a7c15ull) >> (64 - TG_NAME_PLACE_BITS);
}

/* Whether a rule may have this name. It costs less than to look for the rule, and most new files
 * have a name that none has. */
static __always_inline int tg_may_be_named(const struct tg_generation *generation, __u32 length,
					   const void *text)
{
	__u64 first = 0;

	if (bpf_probe_read_kernel(&first, sizeof first, text))
		return 1;
	__u32 behind = length < 8 ? 64 - length * 8 : 0;

	/* None has no bytes: a shift by 64 would be none. */
	if (!length)
		return 0;
	first = first << (behind & 63) >> (behind & 63);
	__u32 place = tg_name_place(first, length);

	return generation->names[place >> 6 & (TG_NAME_PLACES / 64 - 1)] >> (place & 63) & 1;
}

/* Whether a rule may have the name in a struct qstr, of which TG_ADDRESS is known. */
static __always_inline int tg_may_name(const struct tg_generation *generation, __u64 address)
{
	struct qstr qstr = {};

	return tg_read_qstr(address, &qstr) || tg_may_be_named(generation, qstr.len, qstr.name);
}

/* Whether rules by name decide about what is made in a directory with this label. */
static __always_inline int tg_names_decide(const struct tg_generation *generation, __u32 type)
{
	type &= TG_TYPES - 1;
	return generation->named[type >> 6] >> (type & 63) & 1;
}

/* Reads the name in a struct qstr by its TG_ADDRESS. */
static __always_inline void tg_read_name(__u64 address, struct tg_name *name)
{
	struct qstr qstr = {};

	name->length = 0;
	if (tg_read_qstr(address, &qstr))
		return;
	__u32 length = qstr.len;

	if (length > TG_NAME)
		return;
	TG_OPAQUE(length);
	if (!bpf_probe_read_kernel(name->text, length & TG_NAME, qstr.name))
		name->length = length;
}

/* The context of an object whose class the policy does not have: security_compute_sid without
 * the class's rules. */
static __always_inline int tg_compute_unknown(struct tg_generation *generation,
					      const struct tg_question *question,
					      struct tg_label *label)
{
	label->context = question->target;
	label->context.user = question->source.user;
	label->context.role = TG_OBJECT_R;
	label->context.low = label->context.high = question->source.low;
	label->level[0] = *tg_level(&generation->levels, question->source.low);
	return tg_valid(&generation->tables, &generation->levels, &label->context, &label->level[0],
			&label->level[0]);
}

/* Computes the context of a new object in `scratch->label`. Its levels have identifiers
 * afterwards. */
static __always_inline int tg_compute_new(struct tg_generation *generation,
					  struct tg_scratch *scratch)
{
	struct tg_question *question = &scratch->question;
	struct tg_label *label = &scratch->label;
	struct tg_context *context = &label->context;
	int valid;

	if (!question->source.type || !question->target.type) {
		tg_failed(TG_FAILED_NO_CONTEXT);
		return -EACCES;
	}
	if (question->class)
		valid = tg_compute_label(&generation->tables, &generation->levels, question,
					 &scratch->name, label);
	else
		valid = tg_compute_unknown(generation, question, label);
	/* compute_sid_handle_invalid_context: in permissive mode the context is used all the
	 * same. */
	if (!valid) {
		tg_failed(TG_FAILED_NEW_LABEL);
		if (READ_ONCE(state.enforcing) || !context->type)
			return -EACCES;
	}
	if (context->low == TG_NO_LEVEL)
		context->low = tg_level_number(generation, &label->level[0]);
	if (context->high == TG_NO_LEVEL)
		context->high = tg_level_number(generation, &label->level[1]);
	return context->low == TG_NO_LEVEL || context->high == TG_NO_LEVEL ? -EACCES : 0;
}

/* An entry of `transitions`, as one of `avc`: tag 26 | generation 6 | flag 1 | SID 16. */
#define TG_BY_NAME 0x10000u /* names may decide: the entry holds for objects without a name */

static __always_inline __u64 *tg_transition_entry(__u64 key)
{
	__u64 *entry = state.transitions, index = key >> 26 & (TG_TRANSITION_ENTRIES - 1);

	entry += index;
	TG_OPAQUE(entry);
	return entry;
}

/*
 * security_transition_sid: the SID of a new object of a class (SECCLASS) that `source` makes
 * in `target`, or of a process that executes `target`. `name` is the TG_ADDRESS of its struct
 * qstr; 0: it has none. Returns 0 or -EACCES.
 */
TG_FUNCTION int tg_transition(__u32 source, __u32 target, __u32 class, __u64 name, __u32 *sid)
{
	__u64 epoch = READ_ONCE(state.epoch), key = TG_AVC_KEY(source, target, class);
	__u64 *entry = tg_transition_entry(key), tag = tg_avc_tag(key, epoch);
	__u64 found = READ_ONCE(*entry) ^ tag;

	if (!sid)
		return -EACCES;
	int known = !(found >> 32) && !READ_ONCE(state.switching);

	if (known && !(found & TG_BY_NAME && name)) {
		*sid = found & 0xffff;
		return 0;
	}
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_scratch *scratch;

	if (!generation) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return -EACCES;
	}
	if (name && !tg_may_name(generation, name))
		name = 0;
	if (known && !name) {
		*sid = found & 0xffff;
		return 0;
	}
	scratch = tg_take_scratch();
	if (!scratch)
		return -EACCES;
	struct tg_question *question = &scratch->question;

	question->source = tg_context_of(generation, source);
	question->target = tg_context_of(generation, target);
	question->class = generation->classes[class & (TG_SECCLASSES - 1)].class;
	question->ask = TG_ASK_TRANSITION;
	scratch->name.length = 0;
	int by_name = tg_names_decide(generation, question->target.type);

	if (by_name && name)
		tg_read_name(name, &scratch->name);
	int result = tg_compute_new(generation, scratch);

	if (!result)
		result = tg_intern(generation, &scratch->label.context, sid);
	tg_give_scratch(scratch);
	if (!result && !(by_name && name)) {
		__sync_lock_test_and_set(entry, tag | (by_name ? TG_BY_NAME : 0) | *sid);
		if (READ_ONCE(state.epoch) != epoch)
			WRITE_ONCE(*entry, 0);
	}
	return result;
}

/* The name of a dentry. */
#define TG_NAME_ADDRESS(dentry) TG_ADDRESS(&(dentry)->d_name)

#endif
