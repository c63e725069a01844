/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inodes get their labels when they are first seen, and lose them when they go. */
#ifndef TOLLGATE_PROGRAMS_LABEL_H
#define TOLLGATE_PROGRAMS_LABEL_H

#include "../address.h"
#include "../compiler.h"
#include "../genfs.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../overlay.h"
#include "../state.h"
#include "../subject.h"
#include "enforcer.h"

/* selinux_d_instantiate */
SEC("lsm/d_instantiate") int BPF_PROG(d_instantiate, struct dentry *dentry, struct inode *inode)
{
	if (TG_IS_NULL(inode) || inode->i_sb->s_magic == SOCKFS_MAGIC || tg_find_plain_inode(inode))
		return 0;
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);

	if (!label || !label->sid) {
		if (tg_first_sight(dentry, inode) == 1) {
			__u32 sid = tg_determine_again(dentry, inode);

			sid = tg_ask_again(dentry, inode, sid);
			tg_put_determined(dentry, inode, sid);
		}
	} else if (label->flags & TG_INODE_NO_NODE) {
		tg_genfs_task(dentry, tg_directory(dentry), label);
	}
	return 0;
}

/* selinux_inode_free_security: a deleted file needs no label any more. */
SEC("lsm/inode_free_security") int BPF_PROG(inode_free_security, struct inode *inode)
{
	if (inode->i_sb->s_magic == SOCKFS_MAGIC)
		return 0;
	__u64 plain = tg_find_plain_inode(inode);

	if (plain) {
		tg_forget_plain_inode(TG_ADDRESS(inode));
		if (!inode->i_nlink && TG_PLAIN_LABEL_FLAGS(plain) & TG_INODE_DURABLE)
			tg_forget_label(inode);
	}
	if (inode->i_nlink && !READ_ONCE(state.renumbered))
		return 0;
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);

	if (label && label->flags & TG_INODE_DURABLE)
		tg_leave_kept(inode, label);
	return 0;
}

/*
 * selinux_inode_post_setxattr for the attribute that a thread of the daemon is writing: the
 * inode to which overlayfs writes it in its upper layer gets the label. On other file systems
 * the daemon sets it itself.
 */
SEC("lsm/inode_post_setxattr") int BPF_PROG(inode_post_setxattr, struct dentry *dentry)
{
	__u32 sid = READ_ONCE(state.new_label);
	struct inode *inode = dentry->d_inode;

	if (!sid || READ_ONCE(state.labeller) != (__u32)bpf_get_current_pid_tgid() ||
	    !tg_is_daemon(bpf_get_current_task_btf()) || !inode || tg_is_overlay(inode->i_sb))
		return 0;
	struct tg_inode *label =
		bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return 0;
	}
	if (!tg_keep_label(inode, sid, tg_number_of(inode->i_sb), 0))
		label->flags |= TG_INODE_DURABLE;
	WRITE_ONCE(label->sid, sid);
	return 0;
}

#endif
