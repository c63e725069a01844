/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The candidate: a policy that is checked beside the policy in force. It decides nothing.
 * Where it would have decided otherwise, `differences` counts it. Meanwhile caches hold only
 * what both policies allow.
 */
#ifndef TOLLGATE_SHADOW_H
#define TOLLGATE_SHADOW_H

#include "answer.h"
#include "compiler.h"
#include "contexts.h"
#include "enforcer.h"
#include "generation.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"
#include "state.h"
#include "tables.h"

/* Counts an act that the candidate would have denied, or granted. `first` is the entry for the
 * first one of its kind. */
static __always_inline void tg_add_difference(const struct tg_request *request, __u32 now,
					      __u32 then, struct tg_difference *first)
{
	struct tg_difference_key key = {
		.source = request->source,
		.target = request->target,
		.class = request->class,
	};
	struct tg_difference *known = bpf_map_lookup_elem(&differences, &key);

	if (!known) {
		first->since = bpf_ktime_get_boot_ns();
		bpf_map_update_elem(&differences, &key, first, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&differences, &key);
	}
	if (!known) {
		tg_failed(TG_FAILED_SHADOW);
		return;
	}
	__sync_fetch_and_or(&known->denied, request->av & now & ~then);
	__sync_fetch_and_or(&known->granted, request->av & ~now & then);
	__sync_fetch_and_add(&known->count, 1);
}

/* Whether there is a candidate that has these contexts. A function of its own, for its stack. */
static __noinline int tg_candidate_knows(__u32 source, __u32 target)
{
	struct tg_generation *candidate = tg_find_generation(TG_CANDIDATE);

	if (candidate && tg_context_of(candidate, source).type &&
	    tg_context_of(candidate, target).type)
		return 1;
	tg_failed(TG_FAILED_SHADOW);
	return 0;
}

/*
 * Computes the answer of the candidate, if there is one. It stays in the request until the
 * policy in force has answered, because the stack is small: `denied` is what the candidate
 * allows, `allowed` what caches may hold according to it. If it does not know a context yet,
 * it has no opinion, which is counted.
 */
#define TG_NO_OPINION (~0u) /* in `allowed`, where `denied` is 0 */

static __always_inline void tg_ask_shadow(struct tg_request *request, struct tg_decision *answer)
{
	request->allowed = TG_NO_OPINION;
	request->denied = 0;
	if (!READ_ONCE(state.shadow) || !tg_candidate_knows(request->source, request->target))
		return;
	request->allowed = ~tg_answer(TG_CANDIDATE, request, answer);
	request->allowed &= answer->allowed;
	request->denied = answer->allowed;
}

/* Whether that differs from what the policy in force allows. */
static __always_inline int tg_differs_from_shadow(const struct tg_request *request, __u32 allowed)
{
	if (request->allowed == TG_NO_OPINION && !request->denied)
		return 0;
	return !request->quiet && (allowed ^ request->denied) & request->av;
}

#endif
