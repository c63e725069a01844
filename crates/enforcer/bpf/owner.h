/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals that a file sends its owner (fcntl F_SETOWN): they come from who named the owner. */
#ifndef TOLLGATE_OWNER_H
#define TOLLGATE_OWNER_H

#include "process.h"

/*
 * By a file's address, the SID of who set its owner; none: the machine. No file has an owner but
 * through the hook, so what was left of a file that is no more is overwritten before it is read.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, __u32);
} owners SEC(".maps");

/* selinux_file_set_fowner. It cannot fail: an owner that finds no place is nobody's from then on,
 * and so is any that is not known (state.owners_lost). */
SEC("lsm/file_set_fowner") int BPF_PROG(file_set_fowner, struct file *file)
{
	__u64 key = TG_ADDRESS(file);
	__u32 sid = tg_subject() & 0xffff;

	if (sid == TG_SID_MACHINE) {
		bpf_map_delete_elem(&owners, &key);
		return 0;
	}
	if (bpf_map_update_elem(&owners, &key, &sid, BPF_ANY)) {
		bpf_map_delete_elem(&owners, &key);
		WRITE_ONCE(state.owners_lost, 1);
		tg_failed(TG_FAILED_OWNERS_FULL);
	}
	return 0;
}

static __always_inline __u64 tg_owned_file(struct fown_struct *owner)
{
	if (bpf_core_field_exists(struct fown_struct, file))
		return TG_ADDRESS(owner->file);
	return TG_ADDRESS(owner) - bpf_core_field_offset(struct file___with_owner, f_owner);
}

/* selinux_file_send_sigiotask */
SEC("lsm/file_send_sigiotask")
int BPF_PROG(file_send_sigiotask, struct task_struct *task, struct fown_struct *owner, int signal)
{
	__u64 key = tg_owned_file(owner);
	__u32 *sender = bpf_map_lookup_elem(&owners, &key);
	__u32 lost = READ_ONCE(state.owners_lost) ? SECINITSID_UNLABELED : TG_SID_MACHINE;
	__u32 sid = sender ? *sender : lost;

	if (tg_is_unconfined(sid))
		return 0;
	return tg_ask_process(sid, tg_sid_of(task), SECCLASS_PROCESS,
			      tg_signal_av(signal ? signal : SIGIO));
}

#endif
