/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* New inodes: they have their label before another task can open them. */
#ifndef TOLLGATE_PROGRAMS_CREATION_H
#define TOLLGATE_PROGRAMS_CREATION_H

#include "../active.h"
#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../filesystem.h"
#include "../generation.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../label_new.h"
#include "../libbpf.h"
#include "../made_before.h"
#include "../maps.h"
#include "../object.h"
#include "../read.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "../transition.h"
#include "classes.h"
#include "enforcer.h"

/*
 * selinux_inode_init_security. An inode that cannot be labelled is not made. But an unconfined
 * task makes it with the directory's label if the policy permits none, because the machine
 * must go on.
 */
SEC("lsm/inode_init_security")
int BPF_PROG(inode_init_security, struct inode *inode, struct inode *dir, const struct qstr *qstr)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 address = bpf_get_current_task();

	if (!READ_ONCE(state.labels_new))
		WRITE_ONCE(state.labels_new, 1);
	if (TG_IS_NULL(dir))
		return -EOPNOTSUPP;
	tg_note_change(dir->i_sb);
	struct tg_task *task = bpf_task_storage_get(&tasks, current, 0, 0);
	struct tg_inode *above = tg_label_of(dir);
	__u64 own = tg_task_subject_at(address);
	struct tg_inode made = {.task_sid = own & 0xffff};
	__u32 inherited = tg_tell_active(dir, above), class = tg_mode_class(inode->i_mode);
	int named = !TG_IS_NULL(qstr) && qstr->len;

	made.sid = tg_made_before(task, dir, own, class, named ? qstr : 0);
	if (!made.sid && tg_new_inode_sid(task, own, dir, tg_sid_above(dir, above),
					  named ? TG_ADDRESS(qstr) : 0, class, &made.sid)) {
		if (!(tg_subject_of(own) & TG_UNCONFINED))
			return -EACCES;
		made.sid = above ? above->sid : 0;
	}
	tg_note_made(task, inode);
	if (!made.sid)
		return -EOPNOTSUPP;
	made.flags = tg_born(class);
	if (above && inherited != made.sid && tg_keep_new_label(inode, &made, 0))
		return -ENOSPC;
	if (tg_put_label(inode, &made))
		return -ENOMEM;
	if (!(own & TG_UNCONFINED))
		tg_remember_new(inode, own, made.sid, class);
	return -EOPNOTSUPP;
}

/* Records the label of what is made next in a directory with other credentials. */
static __noinline int tg_name_next_in(struct tg_task *task, struct inode *directory,
				      struct qstr *name, __u32 class, const struct cred *cred)
{
	struct tg_inode *above = tg_label_of(directory);
	__u32 sid = 0;

	if (!tg_new_inode_sid(task, tg_task_subject(), directory, tg_sid_above(directory, above),
			      TG_ADDRESS(name), class, &sid))
		tg_name_next(task, TG_KERNEL_ADDRESS(cred), sid);
	return 0;
}

/* Overlayfs makes an inode in its upper layer with credentials of its own. It is labelled like
 * the inode of overlayfs (selinux_dentry_create_files_as). */
SEC("lsm/dentry_create_files_as")
int BPF_PROG(dentry_create_files_as, struct dentry *dentry, int mode, struct qstr *name,
	     const struct cred *old, struct cred *new)
{
	struct inode *directory = tg_directory(dentry);
	struct tg_task *task = tg_make_own_task();

	if (!task)
		return -ENOMEM;
	/* Below a container's root, files are like the directory that they are in. */
	if (directory && tg_mount_context(directory->i_sb))
		task->create_cred = 0;
	else if (directory)
		tg_name_next_in(task, directory, name, tg_mode_class(mode), new);
	return 0;
}

/* Overlayfs copies a file to its upper layer. The copy gets the file's label
 * (selinux_inode_copy_up). */
SEC("lsm/inode_copy_up") int BPF_PROG(inode_copy_up, struct dentry *source, struct cred **new)
{
	struct inode *inode = source->d_inode;
	struct tg_task *task = tg_make_own_task();

	if (!task)
		return -ENOMEM;
	if (inode && tg_mount_context(inode->i_sb))
		task->create_cred = 0;
	else if (inode)
		tg_name_next(task, tg_current_cred(), tg_object_of(inode).sid);
	return 0;
}

/* An object in /proc/PID that is no directory, so nothing is labelled by its path, and nobody
 * depends on: it is plain. Returns whether it has the label now. */
static __always_inline int tg_label_plainly(struct inode *inode, __u32 sid)
{
	struct tg_inode made = {.sid = sid, .flags = TG_INODE_TASK};
	__u64 plain = tg_find_plain_inode(inode);

	if (plain)
		return TG_PLAIN_LABEL_SID(plain) == sid;
	return !bpf_inode_storage_get(&inodes, inode, 0, 0) &&
	       tg_put_plain_at(TG_ADDRESS(inode), tg_identity_of(inode), TG_PLAIN_LABEL(&made));
}

/* selinux_task_to_inode: objects in /proc/PID have the label of the process, even after that
 * has changed. Enforcement depends on the daemon, so its oom_score_adj and the like are
 * protected. */
SEC("lsm/task_to_inode") int BPF_PROG(task_to_inode, struct task_struct *task, struct inode *inode)
{
	__u32 sid = tg_sid_of(task), before, vital = tg_is_daemon(task);
	struct tg_inode *label;

	if (!vital && (inode->i_mode & S_IFMT) != S_IFDIR && tg_label_plainly(inode, sid))
		return 0;
	label = tg_label_of(inode);
	if (!label)
		label = bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return 0;
	}
	if (vital)
		sid |= TG_SID_SURVIVAL;
	before = label->sid;
	if (before == sid)
		return 0;
	if (!before)
		label->flags = TG_INODE_TASK | TG_INODE_NO_NODE;
	WRITE_ONCE(label->sid, sid);
	if (before) {
		/* If a cache is filled from the old label, the epoch has changed meanwhile. */
		__sync_fetch_and_add(&state.epoch, 1);
		tg_forget_access(TG_KEY(inode));
	}
	return 0;
}

/* selinux_inode_init_security_anon */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(inode_init_security_anon, struct inode *inode, const struct qstr *name,
	     const struct inode *context_inode)
{
	__u64 subject = tg_subject_by_call();
	struct tg_inode made = {.class = SECCLASS_ANON_INODE, .task_sid = subject & 0xffff};
	char text[sizeof "[io_uring]"] = {};

	if (name)
		bpf_probe_read_kernel_str(text, sizeof text, name->name);
	if (TG_SAME_TEXT(text, "[memfd]")) {
		if (!tg_has_policycap(TG_POLICYCAP_MEMFD_CLASS))
			return 0;
		made.class = SECCLASS_MEMFD_FILE;
	}
	if (TG_SAME_TEXT(text, "[io_uring]"))
		made.flags = TG_INODE_RING;
	if (!TG_IS_NULL(context_inode)) {
		struct tg_inode *like = tg_label_of((struct inode *)context_inode);

		if (like) {
			made.sid = like->sid;
			made.class = like->class;
		}
	} else {
		tg_transition(subject & 0xffff, subject & 0xffff, made.class,
			      name ? TG_ADDRESS(name) : 0, &made.sid);
	}
	if (made.sid && tg_put_label(inode, &made) && !(subject & TG_UNCONFINED))
		return -ENOMEM;
	if (subject & TG_UNCONFINED)
		return 0;
	if (!made.sid)
		return -EACCES;
	struct tg_request request = {
		.source = subject,
		.target = made.sid,
		.class = made.class,
		.av = ANON_INODE__CREATE,
		.manager = TG_MANAGER_FILE,
		.object = TG_OBJECT_INODE,
		.inode = TG_ADDRESS(inode),
	};

	if (tg_ask(&request))
		return -EACCES;
	if (!(made.flags & TG_INODE_RING))
		return 0;
	/* SELinux checks this since 6.15, in uring_allowed. Here it is checked on every kernel,
	 * so that a policy has the same meaning. */
	request.target = subject & 0xffff;
	request.class = SECCLASS_IO_URING;
	request.av = IO_URING__ALLOWED;
	request.object = TG_OBJECT_NONE;
	request.inode = 0;
	return tg_ask(&request);
}

#endif
