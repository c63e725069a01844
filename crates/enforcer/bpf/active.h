/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Directories that are in use. */
#ifndef TOLLGATE_ACTIVE_H
#define TOLLGATE_ACTIVE_H

#include "compiler.h"
#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "label_unwalked.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"
#include "subvolume.h"

/* The labels of others are not known to be theirs yet. 1: see tg_keeps_all. */
static __noinline int tg_enter_active(struct inode *directory, struct tg_inode *label)
{
	struct tg_superblock *superblock = tg_superblock_of(directory->i_sb);
	__u32 sid = label->sid;

	if (!superblock || superblock->behaviour != TG_FS_XATTR) {
		label->flags |= TG_INODE_ACTIVE;
		return 0;
	}
	if (!(superblock->flags & TG_SUPERBLOCK_WALKED))
		return tg_keeps_all(superblock);
	if (!READ_ONCE(state.labelling_complete))
		return 0;
	struct tg_label_key key = tg_label_key_of(directory);

	label->flags |= TG_INODE_ACTIVE;
	if (!(label->flags & TG_INODE_DURABLE) && key.device && sid && sid != SECINITSID_UNLABELED)
		bpf_map_update_elem(&active, &key, &sid, BPF_ANY);
	return 0;
}

/*
 * Something is made in a directory, or comes to it. After a crash it cannot be told from one that
 * was moved, unless its attribute has its label: the daemon sees to that. The label that what is
 * made there has without an entry in `labels`; 0: none.
 */
static __always_inline __u32 tg_tell_active(struct inode *directory, struct tg_inode *label)
{
	if (!label || (!(label->flags & TG_INODE_ACTIVE) && tg_enter_active(directory, label)))
		return 0;
	return label->sid;
}

#endif
