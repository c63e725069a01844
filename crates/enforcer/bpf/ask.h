/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks a permission: in the access vector cache, then in the tables of the generation in force.
 */
#ifndef TOLLGATE_ASK_H
#define TOLLGATE_ASK_H

#include "answer.h"
#include "audit.h"
#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "record.h"
#include "request.h"
#include "shadow.h"
#include "state.h"
#include "tables.h"

static __always_inline void tg_count_question(__u32 manager, int cached)
{
	if (!state.statistics)
		return;
	struct tg_statistics *statistic = &state.statistic[manager & (TG_MANAGERS - 1)];

	__sync_fetch_and_add(&statistic->asked, 1);
	__sync_fetch_and_add(cached ? &statistic->cached : &statistic->tables, 1);
}

/* The place where the answer to a question is cached, and the tag of the entry. It is computed
 * again after the question was answered, because the stack is small. */
static __always_inline __u64 *tg_avc_place(const struct tg_request *request, __u64 *tag)
{
	__u64 key = TG_AVC_KEY(request->source, request->target, request->class);

	*tag = tg_avc_tag(key, request->began);
	return tg_avc_entry(key);
}

/* Caches an answer. What was denied and then granted in permissive mode stays granted
 * (avc_update_node), so it is audited once. */
static __always_inline void tg_keep_answer(struct tg_request *request, int granted)
{
	__u64 tag, *entry = tg_avc_place(request, &tag);
	__u64 found = READ_ONCE(*entry) ^ tag;

	if (granted && !(found >> 32))
		request->allowed |= (__u32)found;
	__sync_lock_test_and_set(entry, tag | request->allowed);
	if ((__u32)READ_ONCE(state.epoch) != request->began)
		WRITE_ONCE(*entry, 0);
}

/* Counts an act of the current task that the candidate would have decided otherwise. */
static __noinline void tg_note_difference(const struct tg_request *request, __u32 now, __u32 then)
{
	struct tg_difference first = {.process = bpf_get_current_pid_tgid() >> 32};

	bpf_get_current_comm(first.command, sizeof first.command);
	tg_add_difference(request, now, then, &first);
}

/*
 * avc_has_perm: checks whether the source has the permissions. What is denied, or granted with
 * auditallow, is audited. Returns 0 or -EACCES. `request->allowed` is what may be cached.
 */
TG_FUNCTION int tg_avc_has_perm(struct tg_request *request)
{
	if (!request)
		return -EACCES;
	request->began = READ_ONCE(state.epoch);
	if (state.statistics & TG_STATISTICS_RECORDED)
		tg_record(request);
	struct tg_decision answer = {};
	__u64 tag, *entry = tg_avc_place(request, &tag), found = READ_ONCE(*entry) ^ tag;

	if (!(found >> 32) && !(request->av & ~(__u32)found) && !READ_ONCE(state.switching)) {
		tg_count_question(request->manager, 1);
		request->allowed = found;
		return 0;
	}
	/* The canary tests whether anything is checked at all: nothing is counted, audited, or
	 * granted by a mode. */
	if (request->source == TG_SID_CANARY) {
		request->allowed = 0;
		return -EACCES;
	}
	tg_count_question(request->manager, 0);
	tg_ask_shadow(request, &answer);
	__u32 cacheable = ~tg_answer(TG_IN_FORCE, request, &answer); /* some commands only */

	cacheable &= request->allowed;
	if (tg_differs_from_shadow(request, answer.allowed))
		tg_note_difference(request, answer.allowed, request->denied);
	request->allowed = answer.allowed & ~answer.auditallow;
	request->denied = request->av & ~answer.allowed;
	if (request->denied && request->dontaudit & ~answer.auditdeny)
		request->quiet = 1;
	int verdict = tg_audit(request, &answer),
	    granted = verdict == TG_GRANTED && request->denied;

	if (granted)
		request->allowed |= request->denied & ~answer.auditallow;
	request->allowed &= cacheable;
	tg_keep_answer(request, granted);
	return verdict == TG_DENIED ? -EACCES : 0;
}

/*
 * What a hook returns for a denial. The verifier examines a global function (TG_FUNCTION)
 * once, and so assumes that it may return any number (docs/adr/0015). Since 6.12 it refuses a
 * hook's program that may return any number. So the result of a global function becomes a
 * verdict here, and nowhere else. All checks go through tg_ask, or through static functions
 * above it, whose results are verdicts already.
 */
static __always_inline int tg_verdict_of(int denied)
{
	return denied ? -EACCES : 0;
}

/* Checks a permission. Returns 0 or -EACCES, which a hook may return. */
static __always_inline int tg_ask(struct tg_request *request)
{
	return tg_verdict_of(tg_avc_has_perm(request));
}

/* state.statistics and state.switching at once. */
_Static_assert(__builtin_offsetof(struct tg_state, switching) ==
			       __builtin_offsetof(struct tg_state, statistics) + 4 &&
		       __builtin_offsetof(struct tg_state, statistics) % 8 == 0,
	       "enforcer.h");

/* Whether the cache grants this. It costs half of what tg_ask does to find the same out. */
static __always_inline int tg_is_cached(__u32 source, __u32 target, __u32 class, __u32 av)
{
	__u64 key = TG_AVC_KEY(source, target, class);
	__u64 found = READ_ONCE(*tg_avc_entry(key)) ^ tg_avc_tag(key, READ_ONCE(state.epoch));

	return !(found >> 32) && !(av & ~(__u32)found) && !READ_ONCE(*(__u64 *)&state.statistics);
}

#define TG_SELF 0u

/* avc_has_perm where the audit needs only the contexts. */
static __noinline int tg_ask_plainly(__u64 subject, __u32 target, __u32 class, __u32 av,
				     __u32 manager)
{
	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = target == TG_SELF ? subject & 0xffff : target,
		.class = class,
		.av = av,
		.manager = manager,
	};

	return tg_ask(&request);
}

#endif
