/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities and user namespaces. */
#ifndef TOLLGATE_PROGRAMS_CAPABILITY_H
#define TOLLGATE_PROGRAMS_CAPABILITY_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../credential.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../request.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

#define CAP_OPT_NOAUDIT 2u

/* The subject of these credentials: nearly always the current task, else the task that opened a
 * file (file_ns_capable), or that traces it (ptracer_capable). */
static __noinline __u64 tg_capable_subject(const struct cred *cred)
{
	if (cred == bpf_get_current_task_btf()->cred)
		return tg_subject();
	__u64 sid = tg_cred_sid(TG_ADDRESS(cred));

	return tg_is_unconfined(sid) ? sid | TG_UNCONFINED : sid;
}

/* selinux_capable, cred_has_capability: a capability, in the class for its number and for the
 * user namespace. */
SEC("lsm/capable")
int BPF_PROG(capable, const struct cred *cred, struct user_namespace *namespace, int capability,
	     unsigned int options)
{
	__u64 subject = tg_capable_subject(cred);

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
	return tg_ask(&request);
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

	return tg_ask(&request);
}

#endif
