/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* New credentials: each takes a place in the share of its maker. */
#ifndef TOLLGATE_PROGRAMS_CREDENTIAL_H
#define TOLLGATE_PROGRAMS_CREDENTIAL_H

#include "../address.h"
#include "../cache.h"
#include "../compiler.h"
#include "../credential.h"
#include "../credential_put.h"
#include "../holder.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../share.h"
#include "../state.h"
#include "../subject.h"
#include "decide.h"
#include "enforcer.h"

#define TG_X32 0x40000000u /* __X32_SYSCALL_BIT */
#define TG_I386 0x10000u

/* Whether the current task is about to give up its identity, judged by its system call on
 * x86-64 or i386. */
static __noinline int tg_gives_up(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 call = ((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax & ~TG_X32;

	switch (task->thread_info.status & TS_COMPAT ? call | TG_I386 : call) {
	case 105 ... 106: /* setuid, setgid */
	case 113 ... 114: /* setreuid, setregid */
	case 116 ... 117: /* setgroups, setresuid */
	case 119:	  /* setresgid */
	case 122 ... 123: /* setfsuid, setfsgid */
	case 126:	  /* capset */
	case TG_I386 + 23:
	case TG_I386 + 46:
	case TG_I386 + 70 ... TG_I386 + 71:
	case TG_I386 + 81:
	case TG_I386 + 138 ... TG_I386 + 139:
	case TG_I386 + 164:
	case TG_I386 + 170:
	case TG_I386 + 185:
	case TG_I386 + 203 ... TG_I386 + 204:
	case TG_I386 + 206:
	case TG_I386 + 208:
	case TG_I386 + 210:
	case TG_I386 + 213 ... TG_I386 + 216: /* the same with 32 and with 16 bits */
		return 1;
	}
	return 0;
}

/*
 * There is no place for a credential. A program that changes its user and does not check for
 * success would go on as root, so it is killed, except for unconfined root, which finds a
 * place anyway.
 */
TG_FUNCTION int tg_lack_place(__u64 address, __u32 sid, __u32 uid)
{
	if (!tg_gives_up())
		return -ENOMEM;
	if (!uid && tg_task_subject() & TG_UNCONFINED && !tg_remember_cred(address, sid, 1))
		return 0;
	if (bpf_send_signal(9))
		tg_failed(TG_FAILED_CREDENTIALS);
	return -ENOMEM;
}

/*
 * The share of a copy is that of the original. A task that acts for another holds what it
 * makes itself. So does a user whose share was used up when a process became that user's
 * (task_fix_setuid), as soon as the process does more than change its ids. set_user() of Linux
 * 3.1 does not fail any more either, but a later exec does.
 */
static __always_inline __u32 tg_share_of_copy(const struct cred *old, __u32 share)
{
	if (old != bpf_get_current_task_btf()->real_cred)
		return tg_own_share();
	if (__builtin_expect(old->uid.val && share < TG_FIRST_SHARE_OF_USERS, 0) && !tg_gives_up())
		return tg_own_share();
	return share;
}

/* Enters a copy at a free place, from the entry of the original. Returns 0 or -ENOMEM. */
static __always_inline int tg_copy_cred(__u64 *place, __u64 address, const struct cred *old,
					__u64 entry)
{
	__u64 key = tg_address_key(address);
	__u32 sid = entry & 0xffff, share = tg_share_of_copy(old, TG_CREDENTIAL_SHARE_OF(entry));

	if (tg_take_now(TG_ROOM_CREDENTIALS, share))
		return -ENOMEM;
	entry = key << 14 | (__u64)share << TG_CREDENTIAL_SHARE | sid;
	if (!__sync_val_compare_and_swap(place, 0, entry) ||
	    !tg_enter_cred(key, address, sid, share))
		return 0;
	tg_give(TG_ROOM_CREDENTIALS, share);
	return -ENOMEM;
}

/* The entry of a credential whose place is taken, in the form of the array; 0: the machine's. */
static __noinline __u64 tg_entry_elsewhere(__u64 address)
{
	struct tg_credential *known = bpf_map_lookup_elem(&credentials, &address);

	return known ? (__u64)known->share << TG_CREDENTIAL_SHARE | known->sid : 0;
}

/* selinux_cred_prepare: a copy stands for the same subject as the original. What was at its
 * address before is forgotten here as well, because the kernel runs no program within itself,
 * and so misses some ends of credentials. */
SEC("lsm/cred_prepare") int BPF_PROG(cred_prepare, struct cred *new, const struct cred *old)
{
	__u64 from = TG_ADDRESS(old), to = TG_ADDRESS(new), key = tg_address_key(from);
	__u64 entry = READ_ONCE(*tg_credential_place(key));
	__u64 *place = tg_credential_place(tg_address_key(to));

	if (READ_ONCE(*place))
		tg_forget_cred(to);
	if (!tg_is_entry_of(entry, key))
		entry = entry & TG_CREDENTIALS_ELSEWHERE ? tg_entry_elsewhere(from) : 0;
	if (!entry || !tg_copy_cred(place, to, old, entry))
		return 0;
	return tg_lack_place(to, entry & 0xffff, old->euid.val) ? -ENOMEM : 0;
}

/* A credential for another process, the parent (KEYCTL_SESSION_TO_PARENT). The requesting task
 * takes the place, and can be refused it. */
SEC("lsm/cred_alloc_blank") int BPF_PROG(cred_alloc_blank, struct cred *cred, unsigned int flags)
{
	__u64 address = TG_ADDRESS(cred);

	tg_forget_cred(address);
	return tg_remember_cred(address, tg_task_subject() & 0xffff, 0) ? -ENOMEM : 0;
}

/* selinux_cred_transfer */
SEC("lsm/cred_transfer") int BPF_PROG(cred_transfer, struct cred *new, const struct cred *old)
{
	tg_remember_cred(TG_ADDRESS(new), tg_cred_sid(TG_ADDRESS(old)), 1);
	/* If there is no room in that user's share, it stays in the share of its maker. */
	tg_move_cred(TG_ADDRESS(new), tg_user_of(old), 0);
	return 0;
}

/* SELinux checks nothing here. A process with another uid belongs to another user, even if that
 * user's share is used up: a daemon that serves many users must not fail because of one. */
SEC("lsm/task_fix_setuid")
int BPF_PROG(task_fix_setuid, struct cred *new, const struct cred *old, int flags)
{
	if (new->uid.val != old->uid.val)
		tg_move_cred(TG_ADDRESS(new), tg_user_of(new), 0);
	return 0;
}

/* The hook is called only if a module keeps something in credentials (not with lsm=bpf alone),
 * so the program is attached to the function that would call it. */
SEC("fentry/security_cred_free") int BPF_PROG(cred_free, struct cred *cred)
{
	tg_forget_cred(TG_ADDRESS(cred));
	return 0;
}

#endif
