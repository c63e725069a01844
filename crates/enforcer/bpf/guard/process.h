/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes are guarded, by their credentials and their history. */
#ifndef TOLLGATE_GUARD_PROCESS_H
#define TOLLGATE_GUARD_PROCESS_H

#include "guard.h"
#include "maps.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../kernel_address.h"
#include "../libbpf.h"

static const struct tg_guard_task tg_guard_none;

/* Whether credentials can do more than their user: by user 0 in any of the user ids, by a group
 * that is not the user's, or by a capability. In other user namespaces than the first one, user 0
 * still owns what is root's, but capabilities are of that namespace only. */
static __always_inline int tg_guard_is_privileged(const struct cred *cred)
{
	__u64 permitted = 0;

	if (!cred->uid.val || !cred->euid.val || !cred->suid.val || !cred->fsuid.val ||
	    cred->gid.val != cred->egid.val || cred->gid.val != cred->sgid.val)
		return 1;
	if (cred->user_ns->level)
		return 0;
	bpf_core_read(&permitted, sizeof permitted, &cred->cap_permitted);
	return permitted != 0;
}

/* The key of the current process. Its threads have it in common. */
static __always_inline __u64 tg_guard_own_key(void)
{
	return TG_KERNEL_ADDRESS(bpf_get_current_task_btf()->group_leader);
}

/* Counts the entries of processes whose addresses are alike. The size of a struct task_struct is a
 * multiple of 64. */
static __always_inline __u32 *tg_guard_bucket(__u64 key)
{
	return &guard_state.entered[key >> 6 & (TG_GUARD_BUCKETS - 1)];
}

static __always_inline struct tg_guard_task *tg_guard_find(__u64 key)
{
	return READ_ONCE(*tg_guard_bucket(key)) ? bpf_map_lookup_elem(&guard_processes, &key) : 0;
}

/* The guard's entry of the current process, if there is one. */
static __always_inline struct tg_guard_task *tg_guard_current(void)
{
	return tg_guard_find(tg_guard_own_key());
}

/* Enters a process like another one. Returns 0 or -ENOMEM. */
static __noinline int tg_guard_enter(__u64 key, const struct tg_guard_task *like)
{
	long failed = -ENOMEM;

	/* Counted first, so that no entry is missed. */
	__sync_fetch_and_add(tg_guard_bucket(key), 1);
	if (like)
		failed = bpf_map_update_elem(&guard_processes, &key, like, BPF_NOEXIST);
	if (!failed) {
		__sync_fetch_and_add(&guard_state.processes, 1);
		return 0;
	}
	__sync_fetch_and_add(tg_guard_bucket(key), -1);
	if (failed == -EEXIST && !bpf_map_update_elem(&guard_processes, &key, like, BPF_EXIST))
		return 0;
	__sync_fetch_and_add(&guard_state.storage, 1);
	return -ENOMEM;
}

/* The entry of the current process, which is made if there is none. */
static __noinline struct tg_guard_task *tg_guard_make(void)
{
	__u64 key = tg_guard_own_key();
	struct tg_guard_task *task = tg_guard_find(key);

	if (task)
		return task;
	if (tg_guard_enter(key, &tg_guard_none))
		return 0;
	return bpf_map_lookup_elem(&guard_processes, &key);
}

static __noinline int tg_guard_forget(__u64 key)
{
	if (!tg_guard_find(key) || bpf_map_delete_elem(&guard_processes, &key))
		return 0;
	__sync_fetch_and_add(&guard_state.processes, -1);
	__sync_fetch_and_add(tg_guard_bucket(key), -1);
	return 0;
}

/* Whether the current thread enters a domain that the policy marks as guarded, by the exec that is
 * under way: TG_GUARD_IN_DOMAIN or 0. */
static __always_inline __u32 tg_guard_enters_domain(void)
{
	__u64 key = bpf_get_current_task();

	return bpf_map_lookup_elem(&guard_domains, &key) ? TG_GUARD_IN_DOMAIN : 0;
}

/* The same, for the last time in this exec. */
static __always_inline __u32 tg_guard_take_domain(void)
{
	__u64 key = bpf_get_current_task();
	__u32 domain = tg_guard_enters_domain();

	if (domain)
		bpf_map_delete_elem(&guard_domains, &key);
	return domain;
}

/* Why the current task is checked now; 0: it is not. In a domain that the policy marks as guarded
 * it is checked as a daemon, with or without privilege. */
static __always_inline __u32 tg_guard_class_of(const struct tg_guard_task *task)
{
	__u32 class = task ? task->class : 0, domain = class & TG_GUARD_IN_DOMAIN;

	if (class != domain && tg_guard_is_privileged(bpf_get_current_task_btf()->cred))
		return class & ~TG_GUARD_IN_DOMAIN;
	return domain ? TG_GUARD_BY_DAEMON : 0;
}

/* The entry of the current process, if it is checked now. */
static __always_inline struct tg_guard_task *tg_guard_checked(void)
{
	struct tg_guard_task *task = tg_guard_current();

	return tg_guard_class_of(task) ? task : 0;
}

/* Whether a privileged process that executes something now begins as a daemon. */
static __always_inline int tg_guard_is_daemon(const struct cred *cred)
{
	return tg_guard_is_privileged(cred) && !bpf_get_current_task_btf()->signal->tty;
}

/* Notes what the current process has done. */
static __always_inline void tg_guard_note(__u32 history)
{
	struct tg_guard_task *task = tg_guard_current();

	if (task && (task->history & history) != history)
		__sync_fetch_and_or(&task->history, history);
}

#endif
