/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels that the daemon reads and changes where its descriptors do not lead: below overlayfs. */
#ifndef TOLLGATE_RELABEL_H
#define TOLLGATE_RELABEL_H

#include "label.h"
#include "overlay.h"

/*
 * selinux_inode_post_setxattr, for the attribute that the daemon is writing: what overlayfs writes
 * it to in its upper layer is what gets the label. Elsewhere the daemon has set it.
 */
SEC("lsm/inode_post_setxattr") int BPF_PROG(inode_post_setxattr, struct dentry *dentry)
{
	__u32 sid = READ_ONCE(state.new_label);
	struct inode *inode = dentry->d_inode;

	if (!sid || !tg_is_daemon(bpf_get_current_task_btf()) || !inode ||
	    tg_is_overlay(inode->i_sb))
		return 0;
	struct tg_inode *label =
		bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return 0;
	}
	if (!tg_keep_label(inode, sid))
		label->flags |= TG_INODE_DURABLE;
	WRITE_ONCE(label->sid, sid);
	return 0;
}

/* selinux_inode_getxattr, while the daemon asks: it sees no label of an inode of overlayfs. */
static __always_inline void tg_tell_label(struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	if (READ_ONCE(state.asks_label) && inode && tg_is_daemon(bpf_get_current_task_btf()))
		WRITE_ONCE(state.told_label, tg_object_of(inode).sid);
}

#endif
