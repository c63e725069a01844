/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one process may do to another. */
#ifndef TOLLGATE_PROCESS_H
#define TOLLGATE_PROCESS_H

#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "credential.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"
#include "state.h"
#include "subject.h"
#include "task_access.h"

/* cred_has_perm: checks whether one subject may do `av` to another. */
static __noinline int tg_ask_process(__u32 source, __u32 target, __u32 class, __u32 av)
{
	if (tg_is_cached(source, target, class, av))
		return 0;
	struct tg_request request = {
		.source = source,
		.target = target,
		.class = class,
		.av = av,
		.manager = TG_MANAGER_PROCESS,
	};

	return tg_ask(&request);
}

/* Checks what the current task, whose subject is `subject`, does to `task`. */
static __always_inline int tg_ask_about_task(struct tg_request *request, __u64 subject,
					     struct task_struct *task, __u32 class, __u32 av)
{
	__u32 epoch = READ_ONCE(state.epoch);

	*request = (struct tg_request){
		.source = subject,
		.target = tg_sid_of(task),
		.class = class,
		.av = av,
		.manager = TG_MANAGER_PROCESS,
		.object = TG_OBJECT_TASK,
		.task = TG_ADDRESS(task),
		.epoch = epoch,
	};
	int result = tg_avc_has_perm(request);

	tg_remember_task_access(request, task);
	return tg_verdict_of(result);
}

/* Checks what the current task does to `task`, which is itself or another. */
static __noinline int tg_check_task(struct task_struct *task, __u32 class, __u32 av)
{
	__u32 places = tg_task_places(class, av);
	struct tg_request request;

	if (places && tg_all_may_to_task(task, places))
		return 0;
	__u64 subject = tg_direct_subject();

	if (subject & TG_UNCONFINED || (places && tg_hit_own(TG_KEY(task), subject, places)))
		return 0;
	return tg_ask_about_task(&request, subject, task, class, av);
}

/* The same for what may end the daemon, or keep it from its work: if it is the daemon's task, the
 * current one needs the permission to end enforcement, too. */
static __noinline int tg_check_influence(struct task_struct *task, __u32 class, __u32 av)
{
	__u32 places = tg_task_places(class, av);
	__u64 subject = tg_direct_subject();
	struct tg_request request;

	/* What is remembered is not about the daemon's. */
	if (subject & TG_UNCONFINED || (places && tg_hit_own(TG_KEY(task), subject, places)))
		return 0;
	if (tg_is_daemon(task)) {
		request = (struct tg_request){
			.source = subject,
			.target = SECINITSID_SECURITY,
			.class = SECCLASS_SECURITY,
			.av = SECURITY__SETENFORCE,
			.manager = TG_MANAGER_OTHER,
		};
		if (tg_ask(&request))
			return -EACCES;
	}
	return tg_ask_about_task(&request, subject, task, class, av);
}

#define SIGKILL 9
#define SIGCHLD 17
#define SIGSTOP 19
#define SIGIO 29

/* signal_to_av */
static __always_inline __u32 tg_signal_av(int signal)
{
	switch (signal) {
	case 0:
		return PROCESS__SIGNULL;
	case SIGCHLD:
		return PROCESS__SIGCHLD;
	case SIGKILL:
		return PROCESS__SIGKILL;
	case SIGSTOP:
		return PROCESS__SIGSTOP;
	}
	return PROCESS__SIGNAL;
}

/* The tracer's SID; 0: the current task is not traced (ptrace_parent_sid). */
static __always_inline __u32 tg_tracer(void)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!current->ptrace)
		return 0;
	return tg_sid_of(current->parent);
}

#endif
