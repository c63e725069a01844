/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A candidate: a policy that is asked beside the one in force. It decides nothing; where it would
 * have decided otherwise, `differences` counts it. Meanwhile caches hold only what both allow.
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

/* Counts an act that the candidate would have denied, or granted. */
static __noinline void tg_note_difference(const struct tg_request *request, __u32 now, __u32 then)
{
	struct tg_difference_key key = {
		.source = request->source,
		.target = request->target,
		.class = request->class,
	};
	struct tg_difference *known = bpf_map_lookup_elem(&differences, &key), new = {};

	if (!known) {
		new.since = bpf_ktime_get_boot_ns();
		new.process = bpf_get_current_pid_tgid() >> 32;
		bpf_get_current_comm(new.command, sizeof new.command);
		bpf_map_update_elem(&differences, &key, &new, BPF_NOEXIST);
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

/* Whether there is a candidate that knows these contexts. Apart, for its stack. */
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
 * Asks the candidate, if there is one. Its answer lies in the request until the policy in force is
 * asked, for the stack is small: `denied` is what it allows, `allowed` what caches may hold as far
 * as it is concerned. It has no opinion, which is counted, when it does not know a context yet.
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

/* Compares that with what the policy in force allows. What caches may hold as far as the candidate
 * is concerned. */
static __always_inline __u32 tg_compare_shadow(const struct tg_request *request, __u32 allowed)
{
	__u32 kept = request->allowed, then = request->denied;

	if (kept == TG_NO_OPINION && !then)
		return kept;
	if (!request->quiet && (allowed ^ then) & request->av)
		tg_note_difference(request, allowed, then);
	return kept;
}

#endif
