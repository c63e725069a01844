/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities and user namespaces. */
#ifndef TOLLGATE_PROGRAMS_CAPABILITY_H
#define TOLLGATE_PROGRAMS_CAPABILITY_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../credential.h"
#include "../itself.h"
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

/* cred_has_capability: a capability, in the class for its number and for the user namespace. */
static __noinline int tg_check_capable(const struct cred *cred, __u32 initial, __u32 capability,
				       __u32 options)
{
	__u64 subject = tg_capable_subject(cred);
	__u32 class, second = capability & ~31 ? 1 : 0;
	struct tg_request request;

	if (subject & TG_UNCONFINED)
		return 0;
	if (initial) {
		class = second ? SECCLASS_CAPABILITY2 : SECCLASS_CAPABILITY;
		tg_learn_to_themselves(second, class, TG_MANAGER_CAPABILITY, &request);
	} else {
		class = second ? SECCLASS_CAP2_USERNS : SECCLASS_CAP_USERNS;
	}
	if (tg_is_cached(subject, subject & 0xffff, class, 1u << (capability & 31)))
		return 0;
	request = (struct tg_request){
		.source = subject,
		.target = subject & 0xffff,
		.class = class,
		.av = 1u << (capability & 31),
		.manager = TG_MANAGER_CAPABILITY,
		.object = TG_OBJECT_CAPABILITY,
		.number = capability,
		.quiet = options & CAP_OPT_NOAUDIT ? 1 : 0,
	};

	return tg_ask(&request);
}

_Static_assert(TG_ITSELF_CAPABILITY == 0 && TG_ITSELF_CAPABILITY2 == 1, "enforcer.h");

/* selinux_capable. A capability that every confined subject has, it does not matter who uses: that
 * is the case for most that are tested, because a policy has few subjects that are confined and
 * privileged at once. */
SEC("lsm/capable")
int BPF_PROG(capable, const struct cred *cred, struct user_namespace *namespace, int capability,
	     unsigned int options)
{
	__u32 initial = !namespace->level;

	if (initial && tg_all_may_to_themselves(capability >> 5 & 1, 1u << (capability & 31)))
		return 0;
	return tg_check_capable(cred, initial, capability, options);
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
