/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every live confined subject may do to itself: fork, use a capability. Then nobody has to
 * find out which of them asks. state.to_itself has a word per class:
 *
 *   mark 32 (state.any, as it is while the word holds) | permissions 32
 *
 * As in way 3 of the access cache, a subject that becomes live changes the mark, and whatever
 * changes an answer clears the word (State::forget).
 */
#ifndef TOLLGATE_ITSELF_H
#define TOLLGATE_ITSELF_H

#include "ask.h"
#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "request.h"
#include "state.h"

/* The mark: state.any has 16 bits from TG_ACCESS_SID on. */
#define TG_ITSELF_MARK(any) ((any) << (32 - TG_ACCESS_SID))
#define TG_ITSELF_MARKS (~0ull << 32)

/* Whether each live confined subject may do `av`, at least one permission, to itself. */
static __always_inline int tg_all_may_to_themselves(enum tg_itself place, __u32 av)
{
	__u64 known = READ_ONCE(state.to_itself[place]) ^ TG_ITSELF_MARK(READ_ONCE(state.any));

	return (known & (TG_ITSELF_MARKS | av)) == av;
}

/* What all of them may do to themselves, in the class of `request`. */
static __always_inline __u32 tg_allowed_to_themselves(struct tg_request *request)
{
	__u32 allowed = ~0u;

	request->quiet = 1;
	for (__u32 i = 0; i < TG_LIVE; i++) {
		/* The lower half, without TG_LIVE_COMING. */
		request->source = request->target = READ_ONCE(*(__u16 *)&state.live[i]);
		if (!request->source)
			break;
		tg_ask(request);
		allowed &= request->allowed;
	}
	return allowed;
}

/* Finds out what the word of a class has to say, unless it says so already. `request` is used for
 * that. The order is that of tg_remember_answer: the epoch and the mark are read before what they
 * stand for. */
static __always_inline void tg_learn_to_themselves(enum tg_itself place, __u32 class, __u32 manager,
						   struct tg_request *request)
{
	__u64 epoch = READ_ONCE(state.epoch), any = READ_ONCE(state.any), *word;

	if (place >= TG_ITSELF)
		return;
	word = &state.to_itself[place];
	/* Statistics count the checks that reach tg_ask. */
	if (!any || READ_ONCE(state.statistics) ||
	    READ_ONCE(*word) >> 32 == TG_ITSELF_MARK(any) >> 32)
		return;
	*request = (struct tg_request){.class = class, .manager = manager};
	__u64 found = TG_ITSELF_MARK(any) | tg_allowed_to_themselves(request);

	__sync_lock_test_and_set(word, found);
	if (READ_ONCE(state.epoch) != epoch)
		WRITE_ONCE(*word, 0);
}

#endif
