/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Survival: who may stop the enforcer's programs and its daemon. */
#ifndef TOLLGATE_GUARD_H
#define TOLLGATE_GUARD_H

#include "ask.h"
#include "subject.h"

/* Whether the current task may end enforcement or change what is enforced, as SELinux asks who
 * writes to /sys/fs/selinux/enforce. */
static __noinline int tg_check_security(__u32 av)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = SECINITSID_SECURITY,
		.class = SECCLASS_SECURITY,
		.av = av,
		.manager = TG_MANAGER_OTHER,
	};

	return tg_ask(&request) ? -EACCES : 0;
}

/* What the current task does to `task` would do to the daemon. */
static __always_inline int tg_guard_daemon(struct task_struct *task)
{
	__u32 daemon = READ_ONCE(state.daemon);

	if (!daemon || (__u32)task->tgid != daemon)
		return 0;
	return tg_check_security(SECURITY__SETENFORCE);
}

#endif
