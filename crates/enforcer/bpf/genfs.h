/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels by path on file systems that keep none (genfscon). Directories on the way to a path
 * in the policy are nodes. An inode remembers its node, so that one look-up per name is
 * enough.
 */
#ifndef TOLLGATE_GENFS_H
#define TOLLGATE_GENFS_H

#include "compiler.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "plain_inode.h"

/* __security_genfs_sid for one name below a node. */
static __noinline int tg_genfs_find(struct dentry *dentry, __u32 node, struct tg_inode *label)
{
	struct tg_genfs_key key = {.node = node};
	struct tg_genfs_value *found;
	__u32 length = dentry->d_name.len, read = length > TG_GENFS_NAME ? TG_GENFS_NAME : length;

	TG_OPAQUE(read);
	read &= 63;
	if (read > TG_GENFS_NAME || bpf_probe_read_kernel(key.name, read, dentry->d_name.name))
		return 0;
	key.bits = 32 + 8 * read;
	found = bpf_map_lookup_elem(&genfs, &key);
	if (!found)
		return 0;
	label->sid = found->sid;
	label->node = found->length == length ? found->node : 0;
	return 0;
}

/* selinux_genfs_get_sid: the label and the node of an inode on a file system that is labelled
 * by path. */
static __always_inline void tg_genfs_label(struct dentry *dentry, struct inode *directory,
					   const struct tg_superblock *superblock,
					   struct tg_inode *new)
{
	struct tg_inode *above;

	new->sid = superblock->sid;
	if (!directory) {
		new->node = superblock->node;
		return;
	}
	if (!superblock->node)
		return;
	above = tg_label_of(directory);
	if (!above)
		return;
	/* Objects in a process's directory are not labelled like the directory. */
	if (!(above->flags & TG_INODE_TASK))
		new->sid = above->sid;
	if (above->node)
		tg_genfs_find(dentry, above->node, new);
}

/* A directory of a process in proc has its label already (task_to_inode). SELinux leaves /PID
 * out of paths there, so its node is that of the root. */
static __always_inline void tg_genfs_task(struct dentry *dentry, struct inode *directory,
					  struct tg_inode *label)
{
	struct tg_inode found = {}, *above;

	label->flags &= ~TG_INODE_NO_NODE;
	above = directory ? tg_label_of(directory) : 0;
	if (!above || !above->node)
		return;
	if (above->flags & TG_INODE_TASK)
		tg_genfs_find(dentry, above->node, &found);
	else
		found.node = above->node;
	label->node = found.node;
}

#endif
