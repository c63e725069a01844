/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What subjects may do to a task, remembered in the access cache under the task's address, as what
 * they may do to an inode is under that of the inode. No two kernel objects have one address, and a
 * row is cleared when its memory becomes another object (task_alloc, inode_alloc_security).
 *
 * A task becomes another subject without a new epoch, because most of what caches have still holds.
 * So its row is cleared after the change (tg_forget_row), and who fills a row looks at the
 * task's subject again afterwards.
 */
#ifndef TOLLGATE_TASK_ACCESS_H
#define TOLLGATE_TASK_ACCESS_H

#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "libbpf.h"
#include "object.h"
#include "request.h"
#include "state.h"
#include "subject.h"

/* The permissions of class process up to setfscreate have their bits. Transition, which nobody asks
 * about a task, leaves its place to a file's read: what /proc shows of the task. */
#define TG_TASK_PLACES 0x7ffffu
#define TG_TASK_READ PROCESS__TRANSITION

#define TG_TASK_SIGNALS                                                                            \
	(PROCESS__SIGCHLD | PROCESS__SIGKILL | PROCESS__SIGSTOP | PROCESS__SIGNULL |               \
	 PROCESS__SIGNAL)

_Static_assert(PROCESS__SETFSCREATE == 1u << 18 && TG_ACCESS_SID == 19, "classes.txt");
_Static_assert((TG_TASK_SIGNALS | PROCESS__PTRACE) < PROCESS__SETFSCREATE, "classes.txt");

/* Whether every live confined subject may do this to a task, which is not the daemon's. */
static __always_inline int tg_all_may_to_task(struct task_struct *task, __u64 places)
{
	return tg_hit(TG_KEY(task), TG_ANY_WAY, READ_ONCE(state.any), places);
}

/* The permissions in the form of the access cache; 0: it cannot hold all of them. */
static __always_inline __u32 tg_task_places(__u32 class, __u32 av)
{
	if (class == SECCLASS_FILE)
		return av == FILE__READ ? TG_TASK_READ : 0;
	return av & (~TG_TASK_PLACES | TG_TASK_READ) ? 0 : av;
}

static __always_inline __u32 tg_places_of_allowed(const struct tg_request *request)
{
	if (request->class == SECCLASS_FILE)
		return request->allowed & FILE__READ ? TG_TASK_READ : 0;
	return request->allowed & TG_TASK_PLACES & ~TG_TASK_READ;
}

/* Stores an answer about a task. */
static __always_inline void tg_remember_task_access(struct tg_request *request,
						    struct task_struct *task)
{
	__u64 key = TG_KEY(task), any;
	__u32 own = request->source, allowed = request->allowed;

	/* The canary has no permissions, which says nothing about others, and nobody else's say
	 * anything about it. The daemon is protected beside the policy. */
	if (READ_ONCE(state.statistics) || own == TG_SID_CANARY ||
	    request->target == TG_SID_CANARY || tg_is_daemon(task))
		return;
	tg_add_access(key, tg_way(own), (__u64)own << TG_ACCESS_SID, tg_places_of_allowed(request),
		      request->epoch);
	/* This comes before `live` is read: a subject that becomes live later changes it. */
	any = READ_ONCE(state.any);
	if (any) {
		request->allowed = tg_any_allowed(request, own, allowed);
		tg_add_access(key, TG_ANY_WAY, any, tg_places_of_allowed(request), request->epoch);
	}
	/* It may have become another subject meanwhile, and cleared the row before this. */
	if (tg_sid_of(task) != request->target)
		tg_forget_row(key);
}

#endif
