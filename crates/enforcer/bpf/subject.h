/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subject of a check: the SID of the current task (current_sid() of SELinux). */
#ifndef TOLLGATE_SUBJECT_H
#define TOLLGATE_SUBJECT_H

#include "address.h"
#include "cache.h"
#include "compiler.h"
#include "contexts.h"
#include "credential.h"
#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "plain_task.h"
#include "state.h"
#include "trusted.h"

/* The address of a task, in the form in which bpf_get_current_task returns that of the current
 * one. */
static __always_inline __u64 tg_task_address(struct task_struct *task)
{
	return TG_ADDRESS(task) + tg_state_address();
}

/* The contexts of a task whose storage has just been made, at its address `at`. */
static __noinline int tg_fill_task(struct tg_task *task, __u64 at, __u64 cred)
{
	__u64 plain = tg_find_plain(at);
	__u32 sid = plain ? TG_PLAIN_SID(plain) : tg_cred_sid(cred);

	/* Another processor may have filled it meanwhile. */
	if (READ_ONCE(task->sid))
		return 0;
	if (plain)
		task->old_sid = TG_PLAIN_PREVIOUS(plain);
	else if (sid != TG_SID_MACHINE)
		__sync_fetch_and_or(&task->flags, TG_TASK_REMADE);
	__sync_val_compare_and_swap(&task->sid, 0, sid);
	if (plain)
		tg_forget_plain(at);
	return 0;
}

/*
 * The storage of a task, which is made if it has none: the task is plain, or the machine's, or
 * has lost it. At least since 6.18, a fork that fails early, for example because of
 * RLIMIT_NPROC, frees the storage of the parent: free_task() of the child, which still points
 * to it. The task's credentials say which SID it has.
 */
static __always_inline struct tg_task *tg_make_task(struct task_struct *of)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, of, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task)
		tg_failed(TG_FAILED_TASK_STORAGE);
	else if (!task->sid)
		tg_fill_task(task, tg_task_address(of), TG_ADDRESS(of->real_cred));
	return task;
}

/* The storage of the current task, if it has any. A plain task has none, or what is just being made
 * of it; to find that out costs less than to look for storage. */
static __always_inline struct tg_task *tg_own_task(void)
{
	if (tg_find_plain(bpf_get_current_task()))
		return 0;
	return bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
}

/* Whether a task that has this storage, or none, is confined and has lost what was there. */
static __always_inline int tg_has_lost(const struct tg_task *task, __u64 at)
{
	return task ? task->flags & TG_TASK_REMADE : !tg_find_plain(at);
}

/* The SID of a task without storage. */
static __noinline __u32 tg_unstored_sid(__u64 at, __u64 cred)
{
	__u64 plain = tg_find_plain(at);

	return plain ? TG_PLAIN_SID(plain) : tg_cred_sid(cred);
}

/* Whether a task belongs to the daemon's process. */
static __always_inline int tg_is_daemon(struct task_struct *task)
{
	__u32 daemon = READ_ONCE(state.daemon);

	if (!daemon || (__u32)task->tgid != daemon)
		return 0;
	return task->group_leader->start_boottime == READ_ONCE(state.daemon_began);
}

static __always_inline __u64 *tg_task_entry(__u64 task)
{
	/* 12 bits of the product of the address's lower half */
	return &state.task_cache[((__u32)task * 0x9e3779b1u) >> 20];
}

/* A task_struct is aligned to 64 bytes. Of 46 bits of its address, 40 make the tag. */
static __always_inline void tg_remember_task(__u64 task, __u64 subject, __u64 epoch)
{
	__u64 *entry = tg_task_entry(task);

	__sync_lock_test_and_set(entry, task << 18 | subject);
	if (READ_ONCE(state.epoch) != epoch)
		WRITE_ONCE(*entry, 0);
}

TG_FUNCTION __u64 tg_find_subject(__u64 current)
{
	__u64 epoch = READ_ONCE(state.epoch);
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	__u64 subject;

	/* A storage that is busy may not be available (preemption): its credentials say it, too.
	 */
	if (task && task->sid)
		subject = task->sid & 0xffff;
	else
		subject = tg_unstored_sid(
			current,
			TG_ADDRESS(
				TG_UNTRUSTED(bpf_get_current_task_btf(), task_struct)->real_cred));
	if (tg_is_unconfined(subject))
		subject |= TG_UNCONFINED;
	tg_remember_task(current, subject, epoch);
	return subject;
}

/* The current task's own SID, with TG_UNCONFINED. `current` is what bpf_get_current_task
 * returns. */
static __always_inline __u64 tg_task_subject_at(__u64 current)
{
	__u64 found = READ_ONCE(*tg_task_entry(current)) ^ current << 18;

	if (__builtin_expect(found >> 24, 0))
		return tg_find_subject(current);
	return found;
}

static __always_inline __u64 tg_task_subject(void)
{
	return tg_task_subject_at(bpf_get_current_task());
}

/* What `task_cache` has for another task: its SID, with TG_UNCONFINED. 0: nothing. */
static __always_inline __u64 tg_remembered(struct task_struct *task)
{
	__u64 address = tg_task_address(task);
	__u64 found = READ_ONCE(*tg_task_entry(address)) ^ address << 18;

	return __builtin_expect(!(found >> 24), 1) ? found : 0;
}

static __always_inline __u32 tg_stored_sid_of(struct task_struct *task)
{
	struct tg_task *label = bpf_task_storage_get(&tasks, task, 0, 0);
	__u32 sid = label ? label->sid : 0;

	return sid ? sid : tg_unstored_sid(tg_task_address(task), TG_ADDRESS(task->real_cred));
}

/* task_sid_obj: the SID of another task. */
static __always_inline __u32 tg_sid_of(struct task_struct *task)
{
	__u64 found = tg_remembered(task);

	return found ? found & 0xffff : tg_stored_sid_of(task);
}

/* The same, with TG_UNCONFINED. */
static __always_inline __u64 tg_subject_in(struct task_struct *task)
{
	__u64 found = tg_remembered(task);

	if (found)
		return found;
	found = tg_stored_sid_of(task);
	return tg_is_unconfined(found) ? found | TG_UNCONFINED : found;
}

/* Whether the current task acts with credentials that are not its own. */
static __always_inline int tg_acts_for_another(void)
{
	struct task_struct *current = TG_UNTRUSTED(bpf_get_current_task_btf(), task_struct);

	return current->cred != current->real_cred;
}

/* The subject for whom a confined task acts, whose own SID is `subject`: overlayfs lets it act
 * as the task that mounted it, io_uring as the task that registered a personality. All other
 * tasks act for themselves. */
TG_FUNCTION __u64 tg_find_acting(__u64 subject)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 acting = 0;

	if (current->cred == current->real_cred)
		return subject;
	acting = tg_cred_sid(TG_ADDRESS(current->cred));
	if (acting == subject)
		return subject;
	return tg_is_unconfined(acting) ? acting | TG_UNCONFINED : acting;
}

/* The same. This asks only whether another one may be meant, which is cheaper than a call, but the
 * verifier follows it each time. */
static __always_inline __u64 tg_acting_subject(__u64 subject)
{
	struct task_struct *current = bpf_get_current_task_btf();

	return current->cred == current->real_cred ? subject : tg_find_acting(subject);
}

/* current_sid(), with TG_UNCONFINED, of a task with this own SID. An unconfined task is not
 * checked, for whomever it acts. */
static __always_inline __u64 tg_subject_of(__u64 own)
{
	return own & TG_UNCONFINED ? own : tg_acting_subject(own);
}

static __always_inline __u64 tg_subject(void)
{
	return tg_subject_of(tg_task_subject());
}

/* The same, by a call: for what is rare, or where the verifier follows many paths. */
static __always_inline __u64 tg_subject_by_call(void)
{
	__u64 own = tg_task_subject();

	return own & TG_UNCONFINED ? own : tg_find_acting(own);
}

/* The same at hooks that no file system reaches: only io_uring acts for another there, and a
 * confined subject whose personality has fewer permissions (state.overriding). */
static __always_inline __u64 tg_direct_subject(void)
{
	__u64 own = tg_task_subject();

	return __builtin_expect(READ_ONCE(state.overriding), 0) ? tg_subject_of(own) : own;
}

/* Invalidates what way 3 of the access cache has. */
static __always_inline void tg_change_any(void)
{
	__u64 any = READ_ONCE(state.any);

	/* After 2^15 changes an old entry could be taken for a new one. There are no such
	 * entries any more then. */
	if (!any || any >= 0xffffull << TG_ACCESS_SID)
		WRITE_ONCE(state.any, 0);
	else /* Where it fails another processor has just changed it. */
		__sync_val_compare_and_swap(&state.any, any, any + (1 << TG_ACCESS_SID));
}

/*
 * Registers `sid` as a subject that may run from now on, before it does: way 3 of the access cache
 * was computed without it. If another task is doing the same, this one waits until that is done.
 */
TG_FUNCTION int tg_make_live(__u32 sid)
{
	if (sid == TG_SID_MACHINE || tg_is_unconfined(sid))
		return 0;
	for (__u32 i = 0; i < TG_LIVE; i++) {
		__u32 *place = &state.live[i], there = READ_ONCE(*place);

		if (!there)
			there = __sync_val_compare_and_swap(place, 0, sid | TG_LIVE_COMING);
		if (there == sid)
			return 0;
		if (!there || there == (sid | TG_LIVE_COMING)) {
			tg_change_any();
			WRITE_ONCE(*place, sid);
			return 1;
		}
	}
	WRITE_ONCE(state.any, 0);
	return 0;
}

#endif
