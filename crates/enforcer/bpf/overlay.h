/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overlayfs: each of its inodes stands for one on another file system, and has the label of
 * that one, as in SELinux, which reads the attribute through overlayfs. The real inode cannot
 * be reached by a pointer that helpers accept (storage.h).
 */
#ifndef TOLLGATE_OVERLAY_H
#define TOLLGATE_OVERLAY_H

#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "libbpf.h"
#include "state.h"
#include "storage.h"

#define TG_KERNEL(major, minor) ((major) << 16 | (minor) << 8)

extern int LINUX_KERNEL_VERSION __kconfig;
/*
 * The address of the dentry that an overlay inode stands for: in the upper layer, else in the
 * first lower one. Since 6.5 the inode in struct ovl_inode is followed by (upper dentry,
 * struct ovl_entry *); from 5.19 on it was (upper dentry, layer, lower dentry).
 */
static __always_inline __u64 tg_real_dentry(__u64 inode)
{
	__u64 after = inode + ((bpf_core_type_size(struct inode) + 7) & ~7ull);
	__u64 dentry = 0, entry = 0;
	__u32 layers = 0;

	if (bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)after) || dentry)
		return dentry;
	if (LINUX_KERNEL_VERSION < TG_KERNEL(5, 19))
		return 0;
	if (LINUX_KERNEL_VERSION < TG_KERNEL(6, 5)) {
		bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)(after + 16));
		return dentry;
	}
	/* struct ovl_entry: the number of layers, then (layer, dentry) for each */
	bpf_probe_read_kernel(&entry, sizeof entry, (void *)(after + 8));
	bpf_probe_read_kernel(&layers, sizeof layers, (void *)entry);
	if (layers)
		bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)(entry + 16));
	return dentry;
}

/* The SID of the inode that an inode of overlayfs stands for, by the address of the latter; 0:
 * it has none, or it is not known. */
static __always_inline __u32 tg_real_sid(__u64 inode)
{
	struct dentry *dentry = (void *)tg_real_dentry(inode);
	__u64 real = dentry ? (__u64)BPF_CORE_READ(dentry, d_inode) : 0;
	struct tg_inode label = {};

	return real && tg_label_at(real, &label) ? label.sid : 0;
}

static __always_inline int tg_is_overlay(struct super_block *sb)
{
	return sb->s_magic == OVERLAYFS_SUPER_MAGIC;
}

/* The SID of all files of an overlay that a container has as its root, as SELinux has it by the
 * mount option context=; 0: each file has its own. */
static __noinline __u32 tg_mount_context(struct super_block *sb)
{
	if (!READ_ONCE(state.containers) || !tg_is_overlay(sb))
		return 0;
	struct tg_superblock *superblock = tg_superblock_of(sb);

	return superblock ? superblock->context : 0;
}

#endif
