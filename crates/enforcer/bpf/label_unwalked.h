/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The labels of files of a file system that keeps them and that the daemon has not walked yet.
 *
 * What its attributes say, only the walk can read. But of a file system that is new to the machine
 * nothing else is known than its attributes, and its inodes in memory tell whether they have any.
 * One that has none is what SELinux calls it, SECINITSID_FILE. All others have no label, and are
 * denied until they are walked: files with attributes, and all of a file system that was here
 * before, or whose root has attributes.
 */
#ifndef TOLLGATE_LABEL_UNWALKED_H
#define TOLLGATE_LABEL_UNWALKED_H

#include "address.h"
#include "compiler.h"
#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "plain_inode.h"
#include "subject.h"
#include "subvolume.h"

/*
 * Whether all that the current task makes or moves there has its label in `labels`, even if that is
 * its directory's. Otherwise the walk would give it the label that `file_contexts` have for its
 * path, which its maker may not be allowed to give. An unconfined maker is.
 */
static __always_inline int tg_keeps_all(const struct tg_superblock *superblock)
{
	return !(superblock->flags & TG_SUPERBLOCK_WALKED) && !(tg_task_subject() & TG_UNCONFINED);
}

/* Whether an inode is known to have no extended attribute. */
static __noinline int tg_is_bare(struct inode *inode)
{
	__u64 own = TG_KERNEL_ADDRESS(inode), word;
	struct tg_fs_name name = {};

	bpf_probe_read_kernel_str(name.text, sizeof name.text,
				  BPF_CORE_READ(inode, i_sb, s_type, name));
	struct tg_bare *known = bpf_map_lookup_elem(&bare, &name);

	if (!known)
		return 0;
	own -= known->inode;
	TG_ROLL
	for (__u32 i = 0; i < TG_BARE_WORDS; i++)
		if (bpf_probe_read_kernel(&word, sizeof word, (void *)(own + known->at[i])) ||
		    word & known->mask[i])
			return 0;
	return 1;
}

/* The root of a file system gets its dentry before the file system can be found: whether that is
 * new to the machine. From now on it is not. */
static __noinline int tg_meet_filesystem(struct inode *root, struct tg_superblock *superblock)
{
	const __u64 *uuid = (void *)superblock->uuid;
	__u32 met = superblock->number;

	if (!tg_is_bare(root) || !(uuid[0] | uuid[1]) ||
	    bpf_map_update_elem(&uuids, superblock->uuid, &met, BPF_NOEXIST))
		return 0;
	__sync_fetch_and_or(&superblock->flags, TG_SUPERBLOCK_NEW);
	return 0;
}

/* Whether `labels` has an entry of an inode, of this file system and not of one that had its
 * device: it was made or moved since, and its label is for the walk to find. */
static __always_inline int tg_was_kept(struct inode *inode, const struct tg_superblock *superblock)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_label_value *kept = bpf_map_lookup_elem(&labels, &key);

	return kept && kept->mounted == superblock->number;
}

/* The label of an inode that exists; 0: it has none until it is walked. */
static __noinline __u32 tg_unwalked_sid(struct inode *inode, struct inode *directory,
					struct tg_superblock *superblock)
{
	int root = !directory && !inode->i_sb->s_root;

	if (root)
		tg_meet_filesystem(inode, superblock);
	if (!(superblock->flags & TG_SUPERBLOCK_NEW) || !tg_is_bare(inode) ||
	    tg_was_kept(inode, superblock))
		return 0;
	if (root)
		return SECINITSID_FILE;
	struct tg_inode *above = directory ? tg_label_of(directory) : 0;

	return above ? above->sid : 0;
}

#endif
