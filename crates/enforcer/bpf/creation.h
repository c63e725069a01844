/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* New inodes: they have their label before anybody else can open them. */
#ifndef TOLLGATE_CREATION_H
#define TOLLGATE_CREATION_H

#include "label.h"

const struct tg_task tg_machine_task = {.sid = TG_SID_MACHINE};

/* The current task's storage, made where it has none. */
static __always_inline struct tg_task *tg_own_task(void)
{
	struct tg_task *task =
		bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), (void *)&tg_machine_task,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task)
		tg_failed(TG_FAILED_TASK_STORAGE);
	return task;
}

static __always_inline __u64 tg_current_cred(void)
{
	return (__u64)BPF_CORE_READ(bpf_get_current_task_btf(), cred);
}

/*
 * selinux_determine_inode_label: the SID of what the current task makes in a directory. `name` as
 * in tg_transition. 0: the directory has no label, or the policy permits none; errors are counted.
 */
static __always_inline int tg_new_label(struct inode *directory, __u64 name, __u32 class,
					__u32 *sid)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	struct tg_inode *above = bpf_inode_storage_get(&inodes, directory, 0, 0);

	if (task && task->create_sid) {
		struct tg_superblock *superblock = tg_superblock_of(directory->i_sb);

		if (superblock && superblock->flags & TG_SUPERBLOCK_SETTABLE) {
			*sid = task->create_sid;
			return 0;
		}
	}
	if (!above || !above->sid)
		return -EACCES;
	return tg_transition(task ? task->sid : TG_SID_MACHINE, above->sid, class, name, sid);
}

/* The SID of what the current task makes by the name of a dentry. 0 or -EACCES. */
static __always_inline int tg_new_sid(struct inode *directory, struct dentry *dentry, __u32 class,
				      __u32 *sid)
{
	return tg_new_label(directory, TG_NAME_ADDRESS(dentry), class, sid);
}

/*
 * inode_create and its like have decided what the inode that `dentry` gets will be labelled.
 * Kernels that never call inode_init_security learn it from here in d_instantiate. 0 or -ENOMEM.
 */
static __always_inline int tg_creating(struct dentry *dentry, __u32 sid)
{
	if (READ_ONCE(state.labels_new))
		return 0;
	struct tg_task *task = tg_own_task();

	if (!task)
		return -ENOMEM;
	/* overlayfs makes one inside the other: the second place is the inner one's. */
	struct tg_creation *creation = &task->creations[task->creations[0].used & 1];

	creation->dentry = TG_ADDRESS(dentry);
	creation->sid = sid;
	creation->used = 1;
	return 0;
}

/* What the task's own labels say of an inode that it makes with overridden credentials: overlayfs
 * has named it (dentry_create_files_as, inode_copy_up). 0: nothing. */
static __always_inline __u32 tg_named_label(void)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	__u32 sid;

	if (!task || !task->create_cred || task->create_cred != tg_current_cred())
		return 0;
	sid = task->create_cred_sid;
	task->create_cred = 0;
	return sid;
}

/* Labels a new inode of a directory; also for as long as it exists, where its label is not the
 * directory's. */
static __noinline int tg_label_created(struct inode *inode, struct inode *directory, __u32 sid)
{
	struct tg_inode *above = bpf_inode_storage_get(&inodes, directory, 0, 0);
	struct tg_inode new = {.sid = sid, .task_sid = tg_subject() & 0xffff};

	if (above && above->sid != sid) {
		struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);

		if (superblock && superblock->behaviour == TG_FS_XATTR) {
			if (tg_keep_label(inode, sid))
				return -ENOSPC;
			new.flags = TG_INODE_DURABLE;
		}
	}
	return tg_put_label(inode, &new);
}

/*
 * selinux_inode_init_security. A creation that cannot be labelled fails; one by a task that is
 * asked nothing takes the directory's label instead, for the machine must go on.
 */
SEC("lsm/inode_init_security")
int BPF_PROG(inode_init_security, struct inode *inode, struct inode *dir, const struct qstr *qstr)
{
	__u32 sid = 0, class = tg_mode_class(inode->i_mode);
	int result;

	if (!READ_ONCE(state.labels_new))
		WRITE_ONCE(state.labels_new, 1);
	if (!dir)
		return -EOPNOTSUPP;
	sid = tg_named_label();
	result = sid ? 0
		     : tg_new_label(dir, qstr && qstr->len ? TG_KERNEL_ADDRESS(qstr) : 0, class,
				    &sid);
	if (!sid)
		return -EOPNOTSUPP;
	result = tg_label_created(inode, dir, sid);
	if (result == -ENOSPC)
		return -ENOSPC;
	return result ? -ENOMEM : -EOPNOTSUPP;
}

/* Overlayfs makes an inode of its upper layer, with credentials of its own: it is labelled as that
 * of overlayfs would be (selinux_dentry_create_files_as). */
SEC("lsm/dentry_create_files_as")
int BPF_PROG(dentry_create_files_as, struct dentry *dentry, int mode, struct qstr *name,
	     const struct cred *old, struct cred *new)
{
	struct inode *directory = tg_directory(dentry);
	struct tg_task *task;
	__u32 sid = 0;

	if (!directory ||
	    tg_new_label(directory, TG_KERNEL_ADDRESS(name), tg_mode_class(mode), &sid))
		return 0;
	task = tg_own_task();
	if (!task)
		return -ENOMEM;
	task->create_cred_sid = sid;
	task->create_cred = TG_KERNEL_ADDRESS(new);
	return 0;
}

/* Overlayfs copies a file to its upper layer: the copy has its label (selinux_inode_copy_up). */
SEC("lsm/inode_copy_up") int BPF_PROG(inode_copy_up, struct dentry *source, struct cred **new)
{
	struct inode *inode = source->d_inode;
	struct tg_inode *label = inode ? bpf_inode_storage_get(&inodes, inode, 0, 0) : 0;
	struct tg_task *task = label ? tg_own_task() : 0;

	if (!label)
		return 0;
	if (!task)
		return -ENOMEM;
	task->create_cred_sid = label->sid;
	task->create_cred = tg_current_cred();
	return 0;
}

/* selinux_task_to_inode: what lies in /proc/PID is labelled as the process is, also when that has
 * changed. */
SEC("lsm/task_to_inode") int BPF_PROG(task_to_inode, struct task_struct *task, struct inode *inode)
{
	struct tg_task *owner = bpf_task_storage_get(&tasks, task, 0, 0);
	struct tg_inode *label =
		bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 sid = owner ? owner->sid : TG_SID_MACHINE, before;

	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return 0;
	}
	before = label->sid;
	if (before == sid)
		return 0;
	if (!before)
		label->flags = TG_INODE_TASK | TG_INODE_NO_NODE;
	WRITE_ONCE(label->sid, sid);
	if (before) {
		/* Who fills the caches from the old label sees another epoch. */
		__sync_fetch_and_add(&state.epoch, 1);
		tg_forget(TG_KEY(inode));
	}
	return 0;
}

/* selinux_inode_init_security_anon */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(inode_init_security_anon, struct inode *inode, const struct qstr *name,
	     const struct inode *context_inode)
{
	__u64 subject = tg_subject();
	struct tg_inode new = {.class = SECCLASS_ANON_INODE, .task_sid = subject & 0xffff};
	char text[sizeof "[memfd]"] = {};

	if (name)
		bpf_probe_read_kernel_str(text, sizeof text, name->name);
	if (TG_SAME_TEXT(text, "[memfd]")) {
		if (!tg_policycap(TG_POLICYCAP_MEMFD_CLASS))
			return 0;
		new.class = SECCLASS_MEMFD_FILE;
	}
	if (context_inode) {
		struct tg_inode *like =
			bpf_inode_storage_get(&inodes, (struct inode *)context_inode, 0, 0);

		if (like) {
			new.sid = like->sid;
			new.class = like->class;
		}
	} else {
		tg_transition(subject & 0xffff, subject & 0xffff, new.class,
			      name ? TG_KERNEL_ADDRESS(name) : 0, &new.sid);
	}
	if (new.sid && tg_put_label(inode, &new) && !(subject & TG_UNCONFINED))
		return -ENOMEM;
	if (subject & TG_UNCONFINED)
		return 0;
	if (!new.sid)
		return -EACCES;
	struct tg_request request = {
		.source = subject,
		.target = new.sid,
		.class = new.class,
		.av = ANON_INODE__CREATE,
		.manager = TG_MANAGER_FILE,
		.object = TG_OBJECT_INODE,
		.inode = TG_ADDRESS(inode),
	};

	return tg_ask(&request) ? -EACCES : 0;
}

#endif
