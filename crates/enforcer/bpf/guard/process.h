/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes are guarded, by their credentials and their history. */
#ifndef TOLLGATE_GUARD_PROCESS_H
#define TOLLGATE_GUARD_PROCESS_H

#include "guard.h"
#include "maps.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

/* Whether credentials can do more than their user: within the first user namespace, by user 0 in
 * any of the user ids, by a capability, or by a group that is not the user's. */
static __always_inline int tg_guard_is_privileged(const struct cred *cred)
{
	__u64 permitted = 0;

	if (cred->user_ns->level)
		return 0;
	bpf_core_read(&permitted, sizeof permitted, &cred->cap_permitted);
	return !cred->uid.val || !cred->euid.val || !cred->suid.val || !cred->fsuid.val ||
	       permitted || cred->gid.val != cred->egid.val || cred->gid.val != cred->sgid.val;
}

/* The guard's entry of the current task, if there is one. */
static __always_inline struct tg_guard_task *tg_guard_current(void)
{
	return bpf_task_storage_get(&guard_tasks, bpf_get_current_task_btf(), 0, 0);
}

/* Why the current task is checked now; 0: it is not. */
static __always_inline __u32 tg_guard_class_of(const struct tg_guard_task *task)
{
	if (!task || !task->class)
		return 0;
	return tg_guard_is_privileged(bpf_get_current_task_btf()->cred) ? task->class : 0;
}

/* Whether a privileged process that executes something now begins as a daemon. */
static __always_inline int tg_guard_is_daemon(const struct cred *cred)
{
	return tg_guard_is_privileged(cred) && !bpf_get_current_task_btf()->signal->tty;
}

#endif
