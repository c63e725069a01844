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
#include "libbpf.h"
#include "maps.h"
#include "scratch.h"
#include "state.h"
#include "tables.h"

/* Reads a struct qstr by its TG_ADDRESS. */
static __always_inline void tg_read_name(__u64 address, struct tg_name *name)
{
	struct qstr qstr = {};

	name->length = 0;
	address -= TG_ADDRESS(bpf_get_current_task_btf());
	address += bpf_get_current_task();
	if (bpf_core_read(&qstr, sizeof qstr, (struct qstr *)address))
		return;
	__u32 length = qstr.len;

	if (length > TG_NAME)
		return;
	TG_OPAQUE(length);
	if (!bpf_probe_read_kernel(name->text, length & TG_NAME, qstr.name))
		name->length = length;
}

struct tg_level_search {
	struct tg_generation *generation;
	const struct tg_level *level;
	__u32 found;
};

static long tg_level_same(__u32 number, struct tg_level_search *search)
{
	if (!(tg_relation(tg_level(&search->generation->levels, number), search->level) >> TG_EQ &
	      1))
		return 0;
	search->found = number;
	return 1;
}

/* The identifier of a level. A level without one is given one. TG_NO_LEVEL: none is left. */
TG_FUNCTION __u32 tg_level_number(struct tg_generation *generation, const struct tg_level *level)
{
	struct tg_level_search search = {generation, level, TG_NO_LEVEL};

	if (!generation || !level)
		return TG_NO_LEVEL;
	__u32 last = READ_ONCE(generation->last_level);

	bpf_loop(last + 1, tg_level_same, &search, 0);
	if (search.found != TG_NO_LEVEL)
		return search.found;
	last = last < TG_LEVELS - 1 ? __sync_fetch_and_add(&generation->last_level, 1) + 1
				    : TG_LEVELS;
	if (last >= TG_LEVELS) {
		tg_failed(TG_FAILED_LEVELS_FULL);
		return TG_NO_LEVEL;
	}
	generation->levels.level[last & (TG_LEVELS - 1)] = *level;
	return last;
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
	if (!(found >> 32) && !(found & TG_BY_NAME && name) && !READ_ONCE(state.switching)) {
		*sid = found & 0xffff;
		return 0;
	}
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_scratch *scratch;

	if (!generation) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return -EACCES;
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
	__u32 type = question->target.type & (TG_TYPES - 1);
	int by_name = generation->named[type >> 6] >> (type & 63) & 1;

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
