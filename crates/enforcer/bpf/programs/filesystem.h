/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* File systems as objects: mounting, and checks on a whole file system. */
#ifndef TOLLGATE_PROGRAMS_FILESYSTEM_H
#define TOLLGATE_PROGRAMS_FILESYSTEM_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../doorbell.h"
#include "../filesystem.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../object.h"
#include "../overlay.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "../survival.h"
#include "../survival_mount.h"
#include "classes.h"
#include "enforcer.h"

#define MS_REMOUNT 32
#define MS_BIND 4096
#define MS_MOVE 8192
/* These flags change only propagation: MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE, MS_SHARED. */
#define TG_PROPAGATION (0xfu << 17)

/* superblock_has_perm. The audit shows the root of the file system, as in SELinux. */
static __noinline int tg_check_superblock(struct super_block *sb, __u32 av)
{
	__u64 subject = tg_subject_by_call();
	struct dentry *root = av & (FILESYSTEM__MOUNT | FILESYSTEM__GETATTR) ? sb->s_root : 0;

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.class = SECCLASS_FILESYSTEM,
		.av = av,
		.manager = TG_MANAGER_FILESYSTEM,
	};

	if (root) {
		request.object = TG_OBJECT_INODE;
		request.dentry = TG_ADDRESS(root);
		request.inode = TG_ADDRESS(root->d_inode);
	}
	if (tg_superblock_sid(sb, &request.target))
		return -EACCES;
	return tg_ask(&request);
}

/* Whether the daemon must label the files on a file system: it keeps labels, which only the
 * daemon can read, or had files before the programs were attached. On all others each file has
 * been seen. The daemon leaves those alone, because a file system cannot be unmounted while the
 * daemon examines it. */
static __always_inline int tg_is_unwalked(struct super_block *sb, struct inode *root)
{
	struct tg_superblock *superblock = tg_superblock_of(sb);
	struct tg_inode *label;

	if (!superblock || superblock->flags & TG_SUPERBLOCK_WALKED)
		return 0;
	if (superblock->behaviour == TG_FS_XATTR || !root)
		return 1;
	label = tg_label_of(root);
	return !label || !label->sid;
}

/* selinux_sb_kern_mount */
SEC("lsm/sb_kern_mount") int BPF_PROG(sb_kern_mount, struct super_block *sb)
{
	struct dentry *root = sb->s_root;
	struct inode *inode = root->d_inode;

	if (tg_check_superblock(sb, FILESYSTEM__MOUNT))
		return -EACCES;
	if (!(tg_subject_by_call() & TG_UNCONFINED))
		WRITE_ONCE(state.overriding, 1);
	/* The root of overlayfs is known by now; when it got its dentry, it was not. */
	if (tg_is_overlay(sb)) {
		struct tg_superblock *superblock = tg_superblock_of(sb);

		if (superblock)
			superblock->context = 0;
		if (inode)
			tg_first_sight(root, inode);
		return 0;
	}
	if (tg_is_unwalked(sb, inode))
		tg_doorbell(TG_EVENT_MOUNT, 0, sb->s_dev, 0);
	return 0;
}

/* selinux_mount */
SEC("lsm/sb_mount")
int BPF_PROG(sb_mount, const char *source, const struct path *path, const char *type,
	     unsigned long flags)
{
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;

	if (flags & MS_REMOUNT)
		return tg_check_pins(dentry->d_sb->s_dev)
			       ? -EACCES
			       : tg_check_superblock(dentry->d_sb, FILESYSTEM__REMOUNT);
	/* For a move, only a name is known, which may lead elsewhere by the time the move happens.
	 */
	if (flags & MS_MOVE && tg_is_among_pins() && tg_check_security(SECURITY__SETENFORCE))
		return -EACCES;
	if ((flags & MS_BIND || !(flags & TG_PROPAGATION)) &&
	    tg_check_cover(TG_KERNEL_ADDRESS(path->mnt), TG_KERNEL_ADDRESS(dentry)))
		return -EACCES;
	return inode ? tg_check_path(inode, path, FILE__MOUNTON, 0) : 0;
}

/* selinux_move_mount */
SEC("lsm/move_mount")
int BPF_PROG(move_mount, const struct path *from, const struct path *to)
{
	struct dentry *dentry = to->dentry;
	struct inode *inode = dentry->d_inode;

	if (tg_check_unmount(TG_KERNEL_ADDRESS(from->mnt)) ||
	    tg_check_cover(TG_KERNEL_ADDRESS(to->mnt), TG_KERNEL_ADDRESS(dentry)))
		return -EACCES;
	return inode ? tg_check_path(inode, to, FILE__MOUNTON, 0) : 0;
}

/* selinux_umount */
SEC("lsm/sb_umount") int BPF_PROG(sb_umount, struct vfsmount *mount)
{
	if (tg_check_pins(mount->mnt_sb->s_dev) || tg_check_unmount(TG_KERNEL_ADDRESS(mount)))
		return -EACCES;
	return tg_check_superblock(mount->mnt_sb, FILESYSTEM__UNMOUNT);
}

/* SELinux checks nothing here. Every process with the old root gets the new one, including the
 * daemon and the process that starts the next one: with other programs, and another policy. */
SEC("lsm/sb_pivotroot") int BPF_PROG(sb_pivotroot, const struct path *old, const struct path *new)
{
	return tg_is_among_pins() ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

/* The daemon finds labels in storage, by a descriptor (state.settles). */
static __always_inline int tg_settles(void)
{
	__u32 settles = READ_ONCE(state.settles);

	return settles && settles == (__u32)bpf_get_current_pid_tgid();
}

/* selinux_sb_statfs. The daemon calls statfs in order to make the file system known, or an inode
 * no longer plain: then the file system itself is not asked, because it need not answer. */
SEC("lsm/sb_statfs") int BPF_PROG(sb_statfs, struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	if (tg_is_daemon(bpf_get_current_task_btf())) {
		if (tg_settles()) {
			if (inode)
				tg_label_of(inode);
			return -ENODATA;
		}
		tg_superblock_of(dentry->d_sb);
	}
	return tg_check_superblock(dentry->d_sb, FILESYSTEM__GETATTR);
}

/* The device number may belong to another file system already: the entry of that one stays. An
 * entry that the daemon made before the programs had seen either may not be of that one. */
SEC("lsm/sb_free_security") int BPF_PROG(sb_free_security, struct super_block *sb)
{
	__u64 device = sb->s_dev;
	struct tg_superblock *superblock = bpf_map_lookup_elem(&superblocks, &device);

	if (superblock && (!superblock->address || superblock->address == TG_ADDRESS(sb)))
		bpf_map_delete_elem(&superblocks, &device);
	return 0;
}

#endif
