/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that are open or are being opened. */
#ifndef TOLLGATE_FILE_H
#define TOLLGATE_FILE_H

#include "object.h"

/* open_file_to_av */
static __always_inline __u32 tg_open_av(struct file *file)
{
	fmode_t mode = file->f_mode;
	__u32 av = FILE__OPEN;

	if (mode & FMODE_READ)
		av |= FILE__READ;
	if (mode & FMODE_WRITE)
		av |= file->f_flags & O_APPEND ? FILE__APPEND : FILE__WRITE;
	return av;
}

SEC("lsm/file_open") int BPF_PROG(file_open, struct file *file)
{
	struct inode *inode = file->f_inode;

	return tg_check_path(inode, &file->f_path, tg_open_av(file), 0);
}

/* file_mask_to_av */
SEC("lsm/inode_permission") int BPF_PROG(inode_permission, struct inode *inode, int mask)
{
	__u32 av = 0;

	mask &= MAY_READ | MAY_WRITE | MAY_EXEC | MAY_APPEND;
	if (!mask)
		return 0;
	if (mask == MAY_EXEC && (inode->i_mode & S_IFMT) == S_IFDIR)
		return tg_check_inode(inode, 0, DIR__SEARCH, 1);
	if (mask & MAY_READ)
		av |= FILE__READ;
	if (mask & MAY_APPEND)
		av |= FILE__APPEND;
	else if (mask & MAY_WRITE)
		av |= FILE__WRITE;
	if ((inode->i_mode & S_IFMT) == S_IFDIR) {
		if (mask & MAY_EXEC)
			av |= DIR__SEARCH;
		return tg_check_inode(inode, 0, av, 1);
	}
	if (mask & MAY_EXEC)
		av |= FILE__EXECUTE;
	return tg_check_inode(inode, 0, av, 0);
}

SEC("lsm/inode_getattr") int BPF_PROG(inode_getattr, const struct path *path)
{
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;

	return inode ? tg_check_path(inode, path, FILE__GETATTR, 0) : 0;
}

/* An inode's memory becomes another inode. */
SEC("lsm/inode_alloc_security") int BPF_PROG(inode_alloc_security, struct inode *inode)
{
	tg_forget(TG_KEY(inode));
	return 0;
}

#endif
