/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels that the daemon reads and changes where its descriptors do not lead: below overlayfs, and
 * in what has no name. */
#ifndef TOLLGATE_LABEL_OVERLAY_H
#define TOLLGATE_LABEL_OVERLAY_H

#include "address.h"
#include "cache.h"
#include "compiler.h"
#include "enforcer.h"
#include "kernel.h"
#include "label_inode.h"
#include "label_new.h"
#include "libbpf.h"
#include "maps.h"
#include "object.h"
#include "overlay.h"
#include "plain_inode.h"
#include "state.h"
#include "subject.h"

/*
 * Overlayfs writes all attributes of a file to its copy, which it has just made with
 * credentials of its own (ovl_copy_xattr). SELinux leaves its own attribute out at
 * inode_copy_up_xattr, where no program can be attached. Here it may be copied, because the
 * daemon writes the label of the copy right afterwards: the inode is locked meanwhile.
 * io_uring writes attributes in its workers, with anybody's credentials: there it must be a
 * copy that overlayfs has named. Returns 0 or an error.
 */
static __noinline int tg_copies_label(struct dentry *dentry)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tg_task *task = bpf_task_storage_get(&tasks, current, 0, 0);
	struct inode *inode = dentry->d_inode;
	__u64 made = task ? task->made : 0;

	if (!inode || (made & ~TG_MADE_NAMED) != TG_ADDRESS(inode) || !tg_acts_for_another())
		return -EPERM;
	if (current->flags & PF_IO_WORKER && !(made & TG_MADE_NAMED) &&
	    !(tg_task_subject() & TG_UNCONFINED))
		return -EPERM;
	struct tg_inode *label = tg_label_of(inode);

	if (!label || !label->sid)
		return -EPERM;
	if (tg_keep_label(inode, label->sid, tg_number_of(inode->i_sb), 0))
		return -ENOSPC;
	label->flags |= TG_INODE_DURABLE;
	return 0;
}

/* selinux_inode_getxattr for the daemon, which cannot see the label of an inode of overlayfs
 * or of an accepted socket.
 * The file system itself is not asked, because it need not answer. Returns 0, or -ENODATA if
 * this reported the label. */
static __always_inline int tg_tell_label(struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	__u32 asks = READ_ONCE(state.asks_label);

	if (!asks || asks != (__u32)bpf_get_current_pid_tgid() || !inode ||
	    !tg_is_daemon(bpf_get_current_task_btf()))
		return 0;
	struct tg_object object = tg_object_of(inode);
	__u32 sid = tg_mount_context(inode->i_sb);

	if (!sid && tg_is_overlay(inode->i_sb))
		sid = tg_real_sid(TG_KERNEL_ADDRESS(inode));
	WRITE_ONCE(state.reported_class, object.class);
	WRITE_ONCE(state.reported_label, sid ? sid : object.sid);
	return -ENODATA;
}

#endif
