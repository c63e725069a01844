/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Credentials that are made: each takes a place in the share of who makes it. */
#ifndef TOLLGATE_NEWCRED_H
#define TOLLGATE_NEWCRED_H

#include "holder.h"

/* More in a map than any place has: of 1,048,576, the most that there is room for, in 16,384 places
 * 64 each. */
#define TG_MANY_ELSEWHERE (120ull << TG_CREDENTIAL_ELSEWHERE)

/* Gives a credential that has a place another SID. */
static __always_inline int tg_change_cred(__u64 key, __u64 address, __u32 sid)
{
	__u64 *place = tg_credential_place(key), found = READ_ONCE(*place);
	struct tg_credential *elsewhere;

	if (tg_is_of(found, key)) {
		__sync_fetch_and_xor(place, (found ^ sid) & 0xffff);
		return 1;
	}
	if (!(found & TG_CREDENTIALS_ELSEWHERE))
		return 0;
	elsewhere = bpf_map_lookup_elem(&credentials, &address);
	if (!elsewhere)
		return 0;
	WRITE_ONCE(elsewhere->sid, sid);
	return 1;
}

/* Enters one that has no place. 0 or -ENOMEM. */
static __always_inline int tg_enter_cred(__u64 key, __u64 address, __u32 sid, __u32 share)
{
	__u64 entry = key << 14 | (__u64)share << TG_CREDENTIAL_SHARE | sid;
	__u64 *place = tg_credential_place(key), found = READ_ONCE(*place);
	struct tg_credential elsewhere = {sid, share};

	if (!(found & ~TG_CREDENTIALS_ELSEWHERE) &&
	    __sync_val_compare_and_swap(place, found, found | entry) == found)
		return 0;
	/* A count that is full would look like another address. */
	if ((found & TG_CREDENTIALS_ELSEWHERE) >= TG_MANY_ELSEWHERE)
		goto failed;
	__sync_fetch_and_add(place, TG_CREDENTIAL_ONE);
	if (!bpf_map_update_elem(&credentials, &address, &elsewhere, BPF_NOEXIST))
		return 0;
	__sync_fetch_and_add(place, -TG_CREDENTIAL_ONE);
failed:
	tg_failed(TG_FAILED_CREDENTIALS);
	return -ENOMEM;
}

/* Remembers the SID of a credential, one that cannot be refused anyway. 0 or -ENOMEM. */
TG_FUNCTION int tg_remember_cred(__u64 address, __u32 sid, int anyway)
{
	__u64 key = tg_address_key(address);
	__u32 share;

	if (sid == TG_SID_MACHINE) {
		tg_forget_cred(address);
		return 0;
	}
	if (tg_change_cred(key, address, sid))
		return 0;
	share = tg_own_share();
	if (anyway)
		tg_take_anyway(TG_ROOM_CREDENTIALS, share);
	else if (tg_take(TG_ROOM_CREDENTIALS, share))
		return -ENOMEM;
	if (!tg_enter_cred(key, address, sid, share))
		return 0;
	tg_give(TG_ROOM_CREDENTIALS, share);
	return -ENOMEM;
}

/* Writes down the share of a credential that is in the array; the one that it was in. */
static __always_inline __u32 tg_write_share(__u64 *place, __u32 was, __u32 to)
{
	__u64 found = __sync_fetch_and_xor(place, (__u64)(was ^ to) << TG_CREDENTIAL_SHARE);
	__u32 now = TG_CREDENTIAL_SHARE_OF(found);

	/* relabel_slipped has changed it meanwhile, or setcon. */
	if (__builtin_expect(now != was, 0))
		__sync_fetch_and_xor(place, (__u64)(now ^ was) << TG_CREDENTIAL_SHARE);
	return now;
}

/*
 * A credential is another user's, or stands for another subject: it changes to his share. Its
 * copies are in the same, so this is done wherever either changes, and not at each fork. 0, or
 * -ENOMEM: that share is used up, which only `anyway` disregards.
 */
TG_FUNCTION int tg_move_cred(__u64 address, __u32 user, int anyway)
{
	__u64 key = tg_address_key(address), *place = tg_credential_place(key);
	__u64 found = READ_ONCE(*place), subject = tg_cred_sid(address);
	struct tg_credential *elsewhere = 0;
	__u32 was = TG_CREDENTIAL_SHARE_OF(found), to;

	if (subject == TG_SID_MACHINE)
		return 0;
	if (tg_is_unconfined(subject))
		subject |= TG_UNCONFINED;
	to = tg_share_for(user, subject);
	if (!tg_is_of(found, key)) {
		elsewhere = bpf_map_lookup_elem(&credentials, &address);
		if (!elsewhere)
			return 0;
		was = elsewhere->share;
	}
	if (was == to)
		return 0;
	if (anyway)
		tg_take_anyway(TG_ROOM_CREDENTIALS, to);
	else if (tg_take(TG_ROOM_CREDENTIALS, to))
		return -ENOMEM;
	if (elsewhere)
		was = __sync_lock_test_and_set(&elsewhere->share, to);
	else
		was = tg_write_share(place, was, to);
	tg_give(TG_ROOM_CREDENTIALS, was);
	return 0;
}

/*
 * A credential that is the current task's, or will be, stands for another subject, in his share. 0,
 * or -ENOMEM: it stands for whom it did. Whom the machine starts, or lets in, finds a place anyway.
 */
TG_FUNCTION int tg_turn_cred(__u64 address, __u32 sid)
{
	__u32 was = tg_cred_sid(address), user = tg_user_of(bpf_get_current_task_btf()->real_cred);
	int anyway = tg_task_subject() & TG_UNCONFINED ? 1 : 0;

	if (tg_remember_cred(address, sid, anyway))
		return -ENOMEM;
	if (!tg_move_cred(address, user, anyway))
		return 0;
	tg_remember_cred(address, was, 1);
	return -ENOMEM;
}

#define TG_X32 0x40000000u /* __X32_SYSCALL_BIT */
#define TG_I386 0x10000u

/* Whether the current task would give up what it is: its system call, of x86-64 or of i386. */
static __always_inline int tg_gives_up(void)
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
	case TG_I386 + 213 ... TG_I386 + 216: /* the same of 32 and of 16 bits */
		return 1;
	}
	return 0;
}

/*
 * There is no place for a credential. Programs that become another user and do not look whether
 * they have would go on as root: they are killed, but for unconfined root, who finds one anyway.
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
 * The share of a copy: that of the original. Who acts for another holds what he makes himself; and
 * so does a user whose share was used up as a process became his (task_fix_setuid), as soon as he
 * does more than change his ids. set_user() of Linux 3.1 fails no more either, but what follows.
 */
static __always_inline __u32 tg_share_of_copy(const struct cred *old, __u32 share)
{
	if (old != bpf_get_current_task_btf()->real_cred)
		return tg_own_share();
	if (__builtin_expect(old->uid.val && share < TG_FIRST_SHARE_OF_USERS, 0) && !tg_gives_up())
		return tg_own_share();
	return share;
}

/* Enters a copy where nothing is, by the original's entry. 0 or -ENOMEM. */
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

/* The entry of a credential whose place is another's, as if it were there; 0: the machine's. */
static __noinline __u64 tg_entry_elsewhere(__u64 address)
{
	struct tg_credential *known = bpf_map_lookup_elem(&credentials, &address);

	return known ? (__u64)known->share << TG_CREDENTIAL_SHARE | known->sid : 0;
}

/* selinux_cred_prepare: a copy stands for what the original does. What was at its address before is
 * forgotten: the kernel runs no program within itself, and so not at every end of one. */
SEC("lsm/cred_prepare") int BPF_PROG(cred_prepare, struct cred *new, const struct cred *old)
{
	__u64 from = TG_ADDRESS(old), to = TG_ADDRESS(new), key = tg_address_key(from);
	__u64 entry = READ_ONCE(*tg_credential_place(key));
	__u64 *place = tg_credential_place(tg_address_key(to));

	if (READ_ONCE(*place))
		tg_forget_cred(to);
	if (!tg_is_of(entry, key))
		entry = entry & TG_CREDENTIALS_ELSEWHERE ? tg_entry_elsewhere(from) : 0;
	if (!entry || !tg_copy_cred(place, to, old, entry))
		return 0;
	return tg_lack_place(to, entry & 0xffff, old->euid.val) ? -ENOMEM : 0;
}

/* A credential for another process, its parent's (KEYCTL_SESSION_TO_PARENT): whoever asks for it
 * takes the place, which he can be refused. */
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
	/* Where there is no place in his, it stays in that of who made it. */
	tg_move_cred(TG_ADDRESS(new), tg_user_of(old), 0);
	return 0;
}

/* SELinux asks nothing here. Who has another uid is another user, be his share used up or not: a
 * daemon that serves many is not to fail for one of them. */
SEC("lsm/task_fix_setuid")
int BPF_PROG(task_fix_setuid, struct cred *new, const struct cred *old, int flags)
{
	if (new->uid.val != old->uid.val)
		tg_move_cred(TG_ADDRESS(new), tg_user_of(new), 0);
	return 0;
}

#endif
