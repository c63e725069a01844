/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What processes hold although the policy in force no longer permits it: open files, and
 * memory to which files are mapped. The daemon reads these iterators after it has put another
 * policy in force. Meanwhile each use of an open file is checked (file_permission). Mapped
 * memory is used without a call.
 */
#ifndef TOLLGATE_PROGRAMS_REVOCATION_H
#define TOLLGATE_PROGRAMS_REVOCATION_H

#include "../address.h"
#include "../ask.h"
#include "../descriptor.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../object.h"
#include "../read.h"
#include "../request.h"
#include "../scratch.h"
#include "../storage.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"
#include "mapping.h"

/*
 * The holder, and whether it is checked. What is denied is granted to `run --permissive`, as
 * to permissive domains. The canary holds nothing that a policy granted. Threads may have
 * contexts of their own, which are not examined.
 */
static __always_inline int tg_name_holder(struct tg_held *held, struct task_struct *task)
{
	struct tg_task *leader = bpf_task_storage_get(&tasks, task, 0, 0);
	__u32 flags = leader ? leader->flags : 0;

	held->process = task->tgid;
	held->source = tg_sid_of(task);
	if (tg_has_lost(leader, tg_task_address(task)) &&
	    BPF_CORE_READ(task, signal, live.counter) > 1)
		flags |= TG_TASK_MIXED;
	held->mixed = flags & TG_TASK_MIXED ? 1 : 0;
	if (tg_is_unconfined(held->source) || held->source == TG_SID_CANARY)
		return 0;
	return (flags & (TG_TASK_PERMISSIVE | TG_TASK_MIXED)) != TG_TASK_PERMISSIVE;
}

/* Reports to the daemon. If there is no room, the kernel calls again with more. */
static __always_inline void tg_tell_held(struct seq_file *to, struct tg_held *held,
					 const struct tg_request *request)
{
	held->target = request->target;
	held->class = request->class;
	held->denied = request->denied;
	bpf_seq_write(to, held, sizeof *held);
}

SEC("iter/task_file") int held_files(struct bpf_iter__task_file *iterator)
{
	struct task_struct *task = iterator->task;
	struct file *file = iterator->file;
	struct tg_held held = {.place = iterator->fd};

	if (!task || !file)
		return 0;
	if (!tg_name_holder(&held, task))
		return 0;
	struct tg_scratch *scratch = tg_take_scratch();

	if (!scratch)
		return 0;
	scratch->request.denied = 0;
	scratch->request.quiet = 1;
	/* An io_uring may hold files that nobody can find. */
	if (tg_inherit(held.source, TG_KERNEL_ADDRESS(file), scratch) || held.mixed ||
	    scratch->inode.flags & TG_INODE_RING)
		tg_tell_held(iterator->meta->seq, &held, &scratch->request);
	tg_give_scratch(scratch);
	return 0;
}

/* The check of selinux_mmap_file on a file, for the present protection of the memory. */
static __always_inline int tg_ask_about_memory(__u32 subject, __u64 inode, __u64 flags,
					       struct tg_scratch *scratch)
{
	struct tg_inode *label = &scratch->inode;

	if (TG_MEMBER(inode, struct inode, i_flags) & S_PRIVATE)
		return 0;
	*label = (struct tg_inode){};
	if (!tg_label_at(inode, label))
		tg_label_socket(inode, label);
	scratch->request = (struct tg_request){
		.source = subject,
		.target = label->sid ? label->sid : tg_unseen_sid_at(inode),
		.class = label->class ? label->class
				      : tg_mode_class(TG_MEMBER(inode, struct inode, i_mode)),
		.av = FILE__MAP |
		      tg_map_av(flags & VM_SHARED ? 1 : 0, flags & (PROT_WRITE | PROT_EXEC)),
		.quiet = 1,
		.manager = TG_MANAGER_FILE,
	};
	return tg_ask(&scratch->request);
}

SEC("iter/task_vma") int held_memory(struct bpf_iter__task_vma *iterator)
{
	struct task_struct *task = iterator->task;
	struct vm_area_struct *area = iterator->vma;
	struct tg_held held = {};

	if (!task || !area)
		return 0;
	int asked = tg_name_holder(&held, task);
	__u64 file = (__u64)BPF_CORE_READ(area, vm_file);

	if (!asked || !file)
		return 0;
	struct tg_scratch *scratch = tg_take_scratch();

	if (!scratch)
		return 0;
	scratch->request.denied = 0;
	held.place = BPF_CORE_READ(area, vm_start);
	held.memory = 1;
	__u64 inode = (__u64)TG_MEMBER(file, struct file, f_inode);

	if (tg_ask_about_memory(held.source, inode, BPF_CORE_READ(area, vm_flags), scratch) ||
	    held.mixed)
		tg_tell_held(iterator->meta->seq, &held, &scratch->request);
	tg_give_scratch(scratch);
	return 0;
}

#endif
