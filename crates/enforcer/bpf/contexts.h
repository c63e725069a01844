/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SIDs and the contexts that they stand for (security/selinux/ss/sidtab.c). */
#ifndef TOLLGATE_CONTEXTS_H
#define TOLLGATE_CONTEXTS_H

#include "compiler.h"
#include "decide.h"
#include "doorbell.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"
#include "tables.h"

/* A context as two words. If one is read while another processor writes it, either no type is
 * seen, or all of it. */
union tg_context_words {
	struct tg_context context;
	__u64 word[2];
};

static __always_inline void tg_put_context(struct tg_generation *generation, __u32 sid,
					   const struct tg_context *context)
{
	union tg_context_words *place = (void *)&generation->contexts[sid & (TG_SIDS - 1)];
	union tg_context_words words = {.context = *context};

	WRITE_ONCE(place->word[1], words.word[1]);
	__sync_lock_test_and_set(&place->word[0], words.word[0]);
}

/* A new number; 0: there is none left. No SID is 3 modulo 4, because that way of the access
 * cache belongs to all subjects (tg_way). */
static __always_inline __u32 tg_next_sid(void)
{
	for (__u32 try = 0; try < 2; try++) {
		if (READ_ONCE(state.last_sid) >= TG_SIDS - 2)
			return 0;
		__u32 sid = __sync_fetch_and_add(&state.last_sid, 1) + 1;

		if ((sid & 3) != 3)
			return sid;
	}
	return 0;
}

/*
 * sidtab_context_to_sid: the SID of a context in a generation. A context without one is given
 * one. The context must be valid. Returns 0 or -EACCES.
 */
TG_FUNCTION int tg_intern(struct tg_generation *generation, const struct tg_context *context,
			  __u32 *sid)
{
	__u32 *known, new;

	if (!generation || !context || !sid)
		return -EACCES;
	struct tg_sid_key key = {.context = *context, .generation = generation->number};

	known = bpf_map_lookup_elem(&sids, &key);
	if (known) {
		*sid = *known;
		return 0;
	}
	new = tg_next_sid();
	if (!new) {
		tg_failed(TG_FAILED_SIDS_FULL);
		return -EACCES;
	}
	tg_put_context(generation, new, context);
	*sid = new;
	if (!bpf_map_update_elem(&sids, &key, &new, BPF_NOEXIST)) {
		tg_doorbell(TG_EVENT_SID, new, 0, 0);
		return 0;
	}
	/* Another processor was first: its number counts, and ours stands for the same context. */
	known = bpf_map_lookup_elem(&sids, &key);
	if (!known) {
		tg_failed(TG_FAILED_SIDS_FULL);
		return -EACCES;
	}
	*sid = *known;
	return 0;
}

/* convert_context: the context of a SID in the generation before, translated. */
TG_FUNCTION int tg_translate(struct tg_generation *generation, __u32 sid)
{
	struct tg_generation *before = tg_find_generation(TG_BEFORE);

	if (!generation || !before || !before->number ||
	    generation->translation.from != before->number)
		return 0;
	const struct tg_translation *to = &generation->translation;
	struct tg_context context = before->contexts[sid & (TG_SIDS - 1)];

	if (!context.type || context.low >= TG_LEVELS || context.high >= TG_LEVELS)
		return 0;
	context.user = to->user[context.user & (TG_USERS - 1)];
	context.role = to->role[context.role & (TG_ROLES - 1)];
	context.type = to->type[context.type & (TG_TYPES - 1)];
	__u32 low = context.low, high = context.high;

	/* Unlike clang, the verifier does not see that the masks are not needed. */
	TG_OPAQUE(low);
	TG_OPAQUE(high);
	context.low = to->level[low & (TG_LEVELS - 1)];
	context.high = to->level[high & (TG_LEVELS - 1)];
	if (!context.user || !context.role || !context.type || context.low >= TG_LEVELS ||
	    context.high >= TG_LEVELS)
		return 0;
	tg_put_context(generation, sid, &context);
	return 1;
}

/* The context of a SID in a generation; type 0: it has none. */
static __always_inline struct tg_context tg_context_of(struct tg_generation *generation, __u32 sid)
{
	union tg_context_words *place = (void *)&generation->contexts[sid & (TG_SIDS - 1)];
	union tg_context_words words = {.word = {READ_ONCE(place->word[0])}};

	if (!words.context.type && tg_translate(generation, sid))
		words.word[0] = READ_ONCE(place->word[0]);
	words.word[1] = READ_ONCE(place->word[1]);
	return words.context;
}

/* Whether the domain of a SID is unconfined. Without a generation this is not known: then it is
 * confined. */
TG_FUNCTION int tg_is_unconfined(__u32 sid)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (sid == TG_SID_MACHINE)
		return 1;
	if (!generation || sid == TG_SID_CANARY)
		return 0;
	__u32 type = tg_context_of(generation, sid).type & (TG_TYPES - 1);

	return type && generation->unconfined[type >> 6] >> (type & 63) & 1;
}

#endif
