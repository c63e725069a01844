/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities and user namespaces. */
#ifndef TOLLGATE_CAPABILITY_H
#define TOLLGATE_CAPABILITY_H

#include "ask.h"
#include "subject.h"

#define CAP_OPT_NOAUDIT 2u

/*
 * selinux_capable, cred_has_capability: the current task's capability, in the class of its number
 * and of the user namespace. `cred` is nearly always the current task's own; where it is another's
 * (file_ns_capable: who opened a file) the current task is asked all the same.
 */
SEC("lsm/capable")
int BPF_PROG(capable, const struct cred *cred, struct user_namespace *namespace, int capability,
	     unsigned int options)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	int initial = !namespace->level;
	struct tg_request request = {
		.source = subject,
		.target = subject & 0xffff,
		.av = 1u << (capability & 31),
		.manager = TG_MANAGER_CAPABILITY,
		.object = TG_OBJECT_CAPABILITY,
		.number = capability,
		.quiet = options & CAP_OPT_NOAUDIT ? 1 : 0,
	};

	if (capability & ~31)
		request.class = initial ? SECCLASS_CAPABILITY2 : SECCLASS_CAP2_USERNS;
	else
		request.class = initial ? SECCLASS_CAPABILITY : SECCLASS_CAP_USERNS;
	return tg_ask(&request) ? -EACCES : 0;
}

/* selinux_userns_create */
SEC("lsm/userns_create") int BPF_PROG(userns_create, const struct cred *cred)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = subject & 0xffff,
		.class = SECCLASS_USER_NAMESPACE,
		.av = USER_NAMESPACE__CREATE,
		.manager = TG_MANAGER_CAPABILITY,
	};

	return tg_ask(&request) ? -EACCES : 0;
}

#endif
