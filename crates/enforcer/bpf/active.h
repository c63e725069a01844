/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Directories in which something is made. */
#ifndef TOLLGATE_ACTIVE_H
#define TOLLGATE_ACTIVE_H

#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "label_unwalked.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"
#include "subvolume.h"

/* The interval of a directory that is being made, for tg_inode.flags. */
static __always_inline __u32 tg_born(__u32 class)
{
	return class == SECCLASS_DIR ? READ_ONCE(state.interval) << TG_INODE_INTERVAL_SHIFT : 0;
}

/*
 * Whether a directory was made in this interval. Until a checkpoint covers that, a crash makes it
 * doubtful for its age alone, and what is in it as well. Most directories are filled at once and
 * never again, and need no attribute. After 128 intervals the numbers begin anew: then its
 * attribute is written an interval later.
 */
static __always_inline int tg_is_young(const struct tg_inode *label)
{
	__u32 born = label->flags >> TG_INODE_INTERVAL_SHIFT;

	return born && born == READ_ONCE(state.interval);
}

/* The daemon is told only of a directory whose label is known to be its own. Returns 1 if the file
 * system keeps all labels (tg_keeps_all). */
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
	if (!READ_ONCE(state.labelling_complete) || tg_is_young(label))
		return 0;
	struct tg_label_key key = tg_label_key_of(directory);

	label->flags |= TG_INODE_ACTIVE;
	if (!(label->flags & TG_INODE_DURABLE) && key.device && sid &&
	    sid != SECINITSID_UNLABELED) {
		bpf_map_update_elem(&active, &key, &sid, BPF_ANY);
		__sync_lock_test_and_set(&state.activated, 1);
	}
	return 0;
}

/*
 * Called when something is made in a directory, or moved there. After a crash such a directory
 * could not be distinguished from one that was moved, unless its label is in its attribute.
 * The daemon writes it there. Returns the label that a new file there has without an entry in
 * `labels`; 0: none.
 */
static __always_inline __u32 tg_tell_active(struct inode *directory, struct tg_inode *label)
{
	if (!label || (!(label->flags & TG_INODE_ACTIVE) && tg_enter_active(directory, label)))
		return 0;
	return label->sid;
}

#endif
