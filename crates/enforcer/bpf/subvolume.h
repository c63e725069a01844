/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subvolumes of btrfs. Each numbers its inodes from 257 on, and subvolumes made in one
 * transaction have the same generation, so an inode is identified by its subvolume as well.
 *
 * btrfs is a module. Its types are not among those that are relocated when the programs are
 * loaded, because it may be loaded later. The daemon looks them up once it is there.
 */
#ifndef TOLLGATE_SUBVOLUME_H
#define TOLLGATE_SUBVOLUME_H

#include "address.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "state.h"
#include "trusted.h"

#define BTRFS_SUPER_MAGIC 0x9123683e
/* The inode number of the root of each subvolume. */
#define BTRFS_FIRST_FREE_OBJECTID 256

/* The number of the subvolume of a btrfs inode, by the inode's address; 0: it is not known. */
static __noinline __u64 tg_subvolume(__u64 inode)
{
	const volatile struct tg_btrfs *at = &state.btrfs;
	__u64 root = 0, number = 0;

	if (!at->known)
		return 0;
	bpf_probe_read_kernel(&root, sizeof root, (void *)(inode - at->inode + at->root));
	if (root)
		bpf_probe_read_kernel(&number, sizeof number, (void *)(root + at->number));
	return number;
}

/* The key by which an inode's label is kept. Device 0, which no file system has, means that the
 * key is not known: no label is found, and none may be kept. */
static __always_inline struct tg_label_key tg_label_key_of(struct inode *inode)
{
	struct super_block *sb = tg_sb_of(inode);
	struct tg_label_key key = {inode->i_ino, 0, sb->s_dev, inode->i_generation};

	if (sb->s_magic != BTRFS_SUPER_MAGIC)
		return key;
	key.subvolume = tg_subvolume(TG_KERNEL_ADDRESS(inode));
	if (!key.subvolume)
		key.device = 0;
	return key;
}

#endif
