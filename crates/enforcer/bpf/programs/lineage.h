/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The origin of tasks. While hooks do not run, task_alloc labels no child. The daemon reads
 * these iterators, which depend on no hook, and decides the label of each task.
 */
#ifndef TOLLGATE_PROGRAMS_LINEAGE_H
#define TOLLGATE_PROGRAMS_LINEAGE_H

#include "../address.h"
#include "../cache.h"
#include "../compiler.h"
#include "../container.h"
#include "../credential.h"
#include "../credential_put.h"
#include "../holder.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../read.h"
#include "../state.h"
#include "../storage.h"
#include "../subject.h"
#include "../transition.h"
#include "../unit.h"
#include "classes.h"
#include "enforcer.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid___lineage {
	int nr;
};

struct pid___lineage {
	struct upid___lineage numbers[1];
};

struct signal_struct___lineage {
	unsigned int flags;
	unsigned int is_child_subreaper : 1;
	struct pid___lineage *pids[4];
};

struct kernfs_node___lineage {
	__u64 id;
};

struct cgroup___lineage {
	struct kernfs_node___lineage *kn;
	int level;
};

struct css_set___lineage {
	struct cgroup___lineage *dfl_cgrp;
};

struct mm_struct___lineage {
	struct file *exe_file;
};

struct cred___lineage {
	kuid_t uid;
};

struct task_struct___lineage {
	__u64 parent_exec_id, self_exec_id;
	struct signal_struct___lineage *signal;
	struct css_set___lineage *cgroups;
	struct mm_struct___lineage *mm;
	struct cred___lineage *real_cred;
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000
#define PIDTYPE_SID 3
#define SIGNAL_UNKILLABLE 0x00000040 /* set for the first process of a namespace */

/* The domain of a process of the machine in a cgroup that executes the program in a file; 0: it
 * stays the machine's. */
static __noinline __u32 tg_domain_of(__u64 file, __u64 cgroup)
{
	__u64 inode = (__u64)TG_MEMBER(file, struct file, f_inode);
	struct tg_inode label = {};
	__u32 sid = 0;

	if (!tg_label_at(inode, &label) || !label.sid)
		return 0;
	if (READ_ONCE(state.containers))
		sid = tg_container_domain(cgroup);
	if (sid)
		return tg_is_unconfined(sid) ? 0 : sid;
	if (READ_ONCE(state.units) && tg_unit_domain(cgroup, label.sid, &sid) > 0)
		return tg_is_unconfined(sid) ? 0 : sid;
	if (tg_transition(TG_SID_MACHINE, label.sid, SECCLASS_PROCESS, 0, &sid))
		return 0;
	return tg_is_unconfined(sid) ? 0 : sid;
}

/* The SID that task_alloc has given to a task; 0: none, or it was lost with the storage. */
static __always_inline __u32 tg_given_sid(struct task_struct *task, const struct tg_task *label)
{
	return label ? label->sid : TG_PLAIN_SID(tg_find_plain(tg_task_address(task)));
}

static __always_inline void tg_read_lineage(struct tg_lineage *to,
					    struct task_struct___lineage *task)
{
	struct signal_struct___lineage *signal = BPF_CORE_READ(task, signal);
	struct cgroup___lineage *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);

	to->execs = BPF_CORE_READ(task, self_exec_id);
	to->of_parent = BPF_CORE_READ(task, parent_exec_id);
	to->session = BPF_CORE_READ(signal, pids[PIDTYPE_SID], numbers[0].nr);
	to->user = BPF_CORE_READ(task, real_cred, uid.val);
	to->program = (__u64)BPF_CORE_READ(task, mm, exe_file);
	if (BPF_CORE_READ(cgroup, level))
		to->cgroup = BPF_CORE_READ(cgroup, kn, id);
	if (BPF_CORE_READ(signal, flags) & SIGNAL_UNKILLABLE ||
	    BPF_CORE_READ_BITFIELD_PROBED(signal, is_child_subreaper))
		to->adopts = 1;
}

SEC("iter/task") int lineage(struct bpf_iter__task *iterator)
{
	struct task_struct *task = iterator->task;
	struct tg_lineage lineage = {};

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	struct tg_task *label = bpf_task_storage_get(&tasks, task, 0, 0);

	lineage.began = task->start_boottime;
	lineage.task = task->pid;
	lineage.process = task->tgid;
	lineage.parent = BPF_CORE_READ(task, real_parent, tgid);
	lineage.sid = tg_given_sid(task, label);
	lineage.plain = !label && lineage.sid;
	BPF_CORE_READ_STR_INTO(&lineage.name, task, comm);
	tg_read_lineage(&lineage, (void *)task);
	if (!lineage.sid && lineage.program)
		lineage.domain = tg_domain_of(lineage.program, tg_cgroup_of((void *)task));
	bpf_seq_write(iterator->meta->seq, &lineage, sizeof lineage);
	return 0;
}

/*
 * Labels the tasks that must be labelled, and assigns the SIDs of credentials again:
 * credentials that came while hooks did not run may be at the address of earlier ones, and
 * count as those.
 */
SEC("iter/task") int relabel_slipped(struct bpf_iter__task *iterator)
{
	struct task_struct *task = iterator->task;

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	struct tg_slipped key = {
		.began = task->start_boottime,
		.task = task->pid,
	};
	__u32 *found = bpf_map_lookup_elem(&slipped, &key);
	struct tg_task *label =
		found ? tg_make_task(task) : bpf_task_storage_get(&tasks, task, 0, 0);

	if (found && label) {
		tg_make_live(*found);
		WRITE_ONCE(label->sid, *found);
		tg_forget_row(TG_KEY(task));
	}
	const struct cred *cred = task->real_cred;
	__u32 sid = tg_given_sid(task, label);

	tg_remember_cred(TG_ADDRESS(cred), sid ? sid : TG_SID_MACHINE, 1);
	tg_move_cred(TG_ADDRESS(cred), tg_user_of(cred), 1);
	return 0;
}

/* The threads of one process, whose pidfd the link has. The daemon reads it for a process whose
 * storage it does not find. */
SEC("iter/task") int threads(struct bpf_iter__task *iterator)
{
	struct task_struct *task = iterator->task;

	if (!task)
		return 0;
	struct tg_task *label = bpf_task_storage_get(&tasks, task, 0, 0);
	__u32 given = tg_given_sid(task, label);
	struct tg_thread thread = {
		.began = task->start_boottime,
		.sid = given ? given : tg_cred_sid(TG_ADDRESS(task->real_cred)),
		.leader = task->pid == task->tgid,
	};

	if (!label)
		thread.previous = TG_PLAIN_PREVIOUS(tg_find_plain(tg_task_address(task)));

	bpf_seq_write(iterator->meta->seq, &thread, sizeof thread);
	return 0;
}

#endif
