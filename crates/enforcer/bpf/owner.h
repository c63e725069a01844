/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals that a file sends its owner (fcntl F_SETOWN): they come from who named the owner. */
#ifndef TOLLGATE_OWNER_H
#define TOLLGATE_OWNER_H

#include "holder.h"
#include "process.h"

struct tg_owner {
	__u32 sid, share;
};

/*
 * By a file's address, the SID of who set its owner; none: who has opened the file has set it, too.
 * No file has an owner but through the hook, so what was left of a file that is no more is removed
 * before it is read.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct tg_owner);
} owners SEC(".maps");

/* Of the file that was at an address before, too, who had set its owner is no longer known. */
static __always_inline void tg_forget_owner(__u64 key)
{
	struct tg_owner *known = bpf_map_lookup_elem(&owners, &key);
	__u32 share = known ? known->share : 0;

	if (known && !bpf_map_delete_elem(&owners, &key))
		tg_give(TG_ROOM_OWNERS, share);
}

/* 0 or -ENOSPC. Of a file that the machine has opened it must be known, whose share it may be. */
static __always_inline int tg_enter_owner(__u64 key, __u32 sid, __u32 opener)
{
	struct tg_owner owner = {sid, tg_own_share()};

	if (opener == TG_SID_MACHINE)
		tg_take_anyway(TG_ROOM_OWNERS, owner.share);
	else if (tg_take(TG_ROOM_OWNERS, owner.share))
		return -ENOSPC;
	if (!bpf_map_update_elem(&owners, &key, &owner, BPF_ANY))
		return 0;
	tg_give(TG_ROOM_OWNERS, owner.share);
	tg_failed(TG_FAILED_OWNERS_FULL);
	return -ENOSPC;
}

/* selinux_file_set_fowner. It cannot fail: an owner that finds no place is nobody's from then on,
 * and so is any that is not known of a file that a confined task has opened (state.owners_lost). */
SEC("lsm/file_set_fowner") int BPF_PROG(file_set_fowner, struct file *file)
{
	__u64 key = TG_ADDRESS(file);
	__u32 sid = tg_subject() & 0xffff, opener = tg_cred_sid(TG_ADDRESS(file->f_cred));

	tg_forget_owner(key);
	if (sid != opener && tg_enter_owner(key, sid, opener))
		WRITE_ONCE(state.owners_lost, 1);
	return 0;
}

static __always_inline __u64 tg_owned_file(struct fown_struct *owner)
{
	if (bpf_core_field_exists(struct fown_struct, file))
		return TG_ADDRESS(owner->file);
	return TG_ADDRESS(owner) - bpf_core_field_offset(struct file___with_owner, f_owner);
}

/* Who has set the owner of a file. */
static __always_inline __u32 tg_owner_sid(__u64 key)
{
	struct tg_owner *known = bpf_map_lookup_elem(&owners, &key);

	if (known)
		return known->sid;
	__u64 anchor = tg_anchor();
	__u32 opener = tg_cred_sid((__u64)TG_MEMBER(key + anchor, struct file, f_cred) - anchor);

	return opener != TG_SID_MACHINE && READ_ONCE(state.owners_lost) ? SECINITSID_UNLABELED
									: opener;
}

/* selinux_file_send_sigiotask */
SEC("lsm/file_send_sigiotask")
int BPF_PROG(file_send_sigiotask, struct task_struct *task, struct fown_struct *owner, int signal)
{
	__u32 sid = tg_owner_sid(tg_owned_file(owner));

	if (tg_is_unconfined(sid))
		return 0;
	if (tg_guard_daemon_from(task, sid))
		return -EACCES;
	return tg_ask_process(sid, tg_sid_of(task), SECCLASS_PROCESS,
			      tg_signal_av(signal ? signal : SIGIO));
}

#endif
