/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes: how one comes into being, and what it may do to others. */
#ifndef TOLLGATE_PROCESS_H
#define TOLLGATE_PROCESS_H

#include "object.h"

/* selinux_task_alloc: process fork; the child is labelled before it runs. */
SEC("lsm/task_alloc") int BPF_PROG(task_alloc, struct task_struct *child, unsigned long flags)
{
	__u64 epoch = READ_ONCE(state.epoch), subject = tg_subject(),
	      current = bpf_get_current_task();
	__u64 address = current + ((__u64)((char *)child - (char *)bpf_get_current_task_btf()));
	__u32 sid = subject & 0xffff;

	if (sid != TG_SID_MACHINE) {
		struct tg_task *own =
			bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
		struct tg_task *new =
			bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

		if (!own || !new) {
			tg_failed(TG_FAILED_TASK_STORAGE);
			return -ENOMEM;
		}
		*new = *own;
	}
	tg_remember_task(address, subject, epoch);
	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = sid,
		.target = sid,
		.class = SECCLASS_PROCESS,
		.av = PROCESS__FORK,
		.manager = TG_MANAGER_PROCESS,
	};

	return tg_ask(&request) ? -EACCES : 0;
}

#endif
