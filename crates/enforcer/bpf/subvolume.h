/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subvolumes of btrfs: each numbers its inodes from 257 on, and those made in one transaction are
 * of one generation, so that an inode is known by its subvolume, too.
 *
 * btrfs is a module: its types are not among those that are relocated when the programs are loaded,
 * for it may come later. The daemon looks them up once it is there.
 */
#ifndef TOLLGATE_SUBVOLUME_H
#define TOLLGATE_SUBVOLUME_H

#include "state.h"

#define BTRFS_SUPER_MAGIC 0x9123683e
/* The root of each subvolume. */
#define BTRFS_FIRST_FREE_OBJECTID 256

/* The number of the subvolume that an inode of btrfs, by its address, is in; 0: it is not known. */
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

#endif
