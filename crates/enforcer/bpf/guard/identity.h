/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User ids, group ids and capabilities. */
#ifndef TOLLGATE_GUARD_IDENTITY_H
#define TOLLGATE_GUARD_IDENTITY_H

#include "check.h"
#include "maps.h"
#include "process.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../kernel_address.h"
#include "../libbpf.h"

/* The user id that new credentials add; ~0: none. */
static __always_inline __u32 tg_guard_new_id(const struct cred *new, const struct cred *old)
{
	__u32 uid = old->uid.val, euid = old->euid.val, suid = old->suid.val;
	__u32 now = new->euid.val, files = new->fsuid.val;

	if (new->uid.val != uid)
		return new->uid.val;
	if (now != uid && now != euid && now != suid)
		return now;
	if (files != uid && files != euid && files != suid)
		return files;
	return TG_GUARD_ANY;
}

/* A program that is denied another user and does not look whether it has succeeded would go on as
 * root, so it is killed. */
SEC("lsm/task_fix_setuid")
int BPF_PROG(guard_setuid, struct cred *new, const struct cred *old, int flags)
{
	__u32 id = tg_guard_new_id(new, old);

	if (new->uid.val != old->uid.val || new->euid.val != old->euid.val)
		tg_guard_note(TG_GUARD_IDENTITY);
	if (id == TG_GUARD_ANY || !tg_guard_check(TG_GUARD_SETUID, id))
		return 0;
	if (id)
		bpf_send_signal(9);
	return -EPERM;
}

/* The group id that new credentials add; ~0: none. */
static __always_inline __u32 tg_guard_new_group(const struct cred *new, const struct cred *old)
{
	__u32 gid = old->gid.val, egid = old->egid.val, sgid = old->sgid.val, now = new->egid.val;

	if (new->gid.val != gid &&new->gid.val != egid &&new->gid.val != sgid)
		return new->gid.val;
	return now != gid && now != egid && now != sgid ? now : TG_GUARD_ANY;
}

SEC("lsm/task_fix_setgid")
int BPF_PROG(guard_setgid, struct cred *new, const struct cred *old, int flags)
{
	__u32 id = tg_guard_new_group(new, old);

	return id == TG_GUARD_ANY ? 0 : tg_guard_check(TG_GUARD_SETGID, id);
}

SEC("lsm/task_fix_setgroups")
int BPF_PROG(guard_setgroups, struct cred *new, const struct cred *old)
{
	return tg_guard_check(TG_GUARD_GROUPS, 0);
}

/* Only capabilities that programs inherit add anything: all others were permitted already. */
SEC("lsm/capset")
int BPF_PROG(guard_capset, struct cred *new, const struct cred *old, const kernel_cap_t *effective,
	     const kernel_cap_t *inheritable, const kernel_cap_t *permitted)
{
	__u64 before = 0, after = 0;

	bpf_core_read(&before, sizeof before, &old->cap_inheritable);
	bpf_probe_read_kernel(&after, sizeof after, inheritable);
	return after & ~before ? tg_guard_check(TG_GUARD_CAPSET, 0) : 0;
}

#endif
