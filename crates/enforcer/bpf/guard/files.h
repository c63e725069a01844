/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files: what is written, moved, removed, and who may execute it with privilege. */
#ifndef TOLLGATE_GUARD_FILES_H
#define TOLLGATE_GUARD_FILES_H

#include "check.h"
#include "content.h"
#include "maps.h"
#include "process.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../kernel_address.h"
#include "../libbpf.h"
#include "../read.h"

#define TG_EXECUTABLE_BY_GROUP 0010u
#define TG_MEMORY_MAJOR 1u /* /dev/mem and its kin */
#define TG_NULL_MINOR 3u   /* /dev/null; those below it are memory */
#define TG_PORT_MINOR 4u
#define TG_TMPFILE 020000000u /* __O_TMPFILE */

/* Whether a file is on the file system with the pins: a call on it may end the guard. */
static __always_inline int tg_guard_is_pinned(const struct dentry *dentry)
{
	__u32 pins = READ_ONCE(guard_state.pins);

	return pins && dentry->d_sb->s_dev == pins;
}

/* Checks a call on a file. */
static __always_inline int tg_guard_check_file(__u32 call, __u32 value, const struct dentry *dentry,
					       const struct vfsmount *mount)
{
	struct tg_guard_task *task = tg_guard_checked();
	__u64 at, in;

	if (!task)
		return 0;
	at = TG_KERNEL_ADDRESS(dentry);
	in = TG_KERNEL_ADDRESS(mount);
	if (tg_guard_is_pinned(dentry) && tg_guard_check_at(task, TG_GUARD_ITSELF, 0, at, in))
		return -EPERM;
	return tg_guard_check_at(task, call, value, at, in) ? -EPERM : 0;
}

/* Tells the daemon that a file is a program with privilege from now on, or has replaced one. */
static __noinline int tg_guard_tell_program(__u64 dentry, __u64 mount)
{
	struct tg_guard_event *event = tg_guard_reserve();

	if (!event)
		return 0;
	event->call = TG_GUARD_REGISTER;
	tg_guard_tell_path(event, dentry, mount);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* The bits by which a mode gives privilege. Without the group's right to execute, the set-group-id
 * bit is for locks. */
static __always_inline __u32 tg_guard_bits(__u32 mode)
{
	__u32 bits = mode & TG_GUARD_SET_USER;

	if (mode & TG_EXECUTABLE_BY_GROUP)
		bits |= mode & TG_GUARD_SET_GROUP;
	return bits;
}

SEC("lsm/path_chmod") int BPF_PROG(guard_chmod, const struct path *path, umode_t mode)
{
	struct dentry *dentry = path->dentry;
	__u32 had = dentry->d_inode->i_mode, bits = tg_guard_bits(mode) & ~tg_guard_bits(had);
	__u32 canary = READ_ONCE(guard_state.canary);

	if (!bits || (had & S_IFMT) != S_IFREG)
		return 0;
	if (canary && canary == (__u32)bpf_get_current_pid_tgid() && !dentry->d_inode->i_nlink)
		return -EPERM;
	if (tg_guard_check_file(TG_GUARD_CHMOD, bits, dentry, path->mnt))
		return -EPERM;
	return tg_guard_tell_program(TG_KERNEL_ADDRESS(dentry), TG_KERNEL_ADDRESS(path->mnt));
}

/* Whether what the current task makes is its user's own. */
static __always_inline int tg_guard_makes_own(void)
{
	const struct cred *cred = bpf_get_current_task_btf()->cred;

	return cred->uid.val && cred->uid.val == cred->fsuid.val;
}

/*
 * What is made: a file with the bits, or something that is no file. open(2) makes a file before it
 * opens it, so the file is written to; a user's own is none of the guard's.
 */
SEC("lsm/path_mknod")
int BPF_PROG(guard_mknod, const struct path *dir, struct dentry *dentry, umode_t mode,
	     unsigned int dev)
{
	__u32 bits = tg_guard_bits(mode), type = mode & S_IFMT;

	if (type && type != S_IFREG)
		return tg_guard_check_file(TG_GUARD_MKNOD, 0, dentry, dir->mnt);
	if (bits && tg_guard_check_file(TG_GUARD_CHMOD, bits, dentry, dir->mnt))
		return -EPERM;
	return tg_guard_makes_own() ? 0 : tg_guard_check_file(TG_GUARD_WRITE, 0, dentry, dir->mnt);
}

/* Whether writing to a file matters: not where it is a terminal, a pipe or /dev/null. */
static __always_inline int tg_guard_is_kept(const struct inode *inode)
{
	__u32 type = inode->i_mode & S_IFMT, minor = inode->i_rdev & 0xfffff;

	if (type == S_IFCHR)
		return inode->i_rdev >> 20 == TG_MEMORY_MAJOR &&
		       (minor < TG_NULL_MINOR || minor == TG_PORT_MINOR);
	return type == S_IFREG || type == S_IFBLK;
}

/* Checks opening for writing. The user's own files need no rule: privilege adds nothing there. */
static __always_inline int tg_guard_check_write(const struct inode *inode, struct dentry *dentry,
						struct vfsmount *mount)
{
	__u32 user = bpf_get_current_task_btf()->cred->uid.val;

	if (!tg_guard_is_kept(inode) || (user && user == inode->i_uid.val))
		return 0;
	return tg_guard_check_file(TG_GUARD_WRITE, 0, dentry, mount);
}

/* A file is made without a name (O_TMPFILE). Nobody else has it: only its bits matter, until it is
 * given a name. */
static __always_inline int tg_guard_check_unnamed(const struct file *file)
{
	__u32 bits = tg_guard_bits(file->f_inode->i_mode);

	return bits ? tg_guard_check_file(TG_GUARD_CHMOD, bits, file->f_path.dentry,
					  file->f_path.mnt)
		    : 0;
}

/* The content of a file that can be written to from now on is not known any more. */
SEC("lsm/file_open") int BPF_PROG(guard_open, struct file *file)
{
	struct inode *inode = file->f_inode;

	if (file->f_mode & FMODE_READ && tg_guard_is_untrusted(inode))
		tg_guard_note(TG_GUARD_UNTRUSTED);
	if (!(file->f_mode & FMODE_WRITE))
		return 0;
	tg_guard_forget_content(inode);
	if (file->f_flags & TG_TMPFILE && !inode->i_nlink)
		return tg_guard_check_unnamed(file);
	/* path_mknod has checked the same call. */
	if (file->f_mode & FMODE_CREATED && !tg_guard_makes_own())
		return 0;
	return tg_guard_check_write(inode, file->f_path.dentry, file->f_path.mnt);
}

/* truncate(2) opens nothing. */
SEC("lsm/path_truncate") int BPF_PROG(guard_truncate, const struct path *path)
{
	struct inode *inode = path->dentry->d_inode;

	tg_guard_forget_content(inode);
	return tg_guard_check_write(inode, path->dentry, path->mnt);
}

SEC("lsm/path_unlink")
int BPF_PROG(guard_unlink, const struct path *dir, struct dentry *dentry)
{
	return tg_guard_check_file(TG_GUARD_UNLINK, 0, dentry, dir->mnt);
}

SEC("lsm/path_rmdir") int BPF_PROG(guard_rmdir, const struct path *dir, struct dentry *dentry)
{
	return tg_guard_check_file(TG_GUARD_UNLINK, 0, dentry, dir->mnt);
}

/* The effective user of the current task in the first user namespace; ~0: it is in another one. */
static __always_inline __u32 tg_guard_effective_user(void)
{
	const struct cred *cred = bpf_get_current_task_btf()->cred;

	return cred->user_ns->level ? TG_GUARD_ANY : cred->euid.val;
}

/* Both names are on one mount. */
static __always_inline int tg_guard_check_names(const struct path *old_dir,
						const struct dentry *old,
						const struct path *new_dir,
						const struct dentry *new)
{
	struct tg_guard_task *task = tg_guard_checked();
	__u64 from, to, in;

	if (!task)
		return 0;
	from = TG_KERNEL_ADDRESS(old);
	to = TG_KERNEL_ADDRESS(new);
	in = TG_KERNEL_ADDRESS(old_dir->mnt);
	if (tg_guard_is_pinned(old) && (tg_guard_check_at(task, TG_GUARD_ITSELF, 0, from, in) ||
					tg_guard_check_at(task, TG_GUARD_ITSELF, 0, to, in)))
		return -EPERM;
	if (old_dir->dentry == new_dir->dentry)
		return tg_guard_check_two(task, TG_GUARD_RENAME, from, to, in) ? -EPERM : 0;
	return tg_guard_check_at(task, TG_GUARD_RENAME, 0, from, in) ||
			       tg_guard_check_at(task, TG_GUARD_RENAME, 0, to, in)
		       ? -EPERM
		       : 0;
}

SEC("lsm/path_rename")
int BPF_PROG(guard_rename, const struct path *old_dir, struct dentry *old,
	     const struct path *new_dir, struct dentry *new)
{
	struct inode *file = old->d_inode;
	int program = 0;

	if (tg_guard_check_names(old_dir, old, new_dir, new))
		return -EPERM;
	/* Only root decides what a program is. */
	if (!file || tg_guard_effective_user())
		return 0;
	if (new->d_inode)
		program = tg_guard_inherit(file, new->d_inode);
	if ((file->i_mode & S_IFMT) == S_IFREG && tg_guard_bits(file->i_mode))
		program = 1;
	return program ? tg_guard_tell_program(TG_KERNEL_ADDRESS(new),
					       TG_KERNEL_ADDRESS(new_dir->mnt))
		       : 0;
}

/* Both names are on one mount. What has no name yet has only the new one. */
SEC("lsm/path_link")
int BPF_PROG(guard_link, struct dentry *old, const struct path *dir, struct dentry *new)
{
	struct inode *file = old->d_inode;

	if ((!file || file->i_nlink) && tg_guard_check_file(TG_GUARD_LINK, 0, old, dir->mnt))
		return -EPERM;
	return tg_guard_check_file(TG_GUARD_LINK, 0, new, dir->mnt);
}

SEC("lsm/path_symlink")
int BPF_PROG(guard_symlink, const struct path *dir, struct dentry *dentry, const char *old)
{
	return tg_guard_check_file(TG_GUARD_SYMLINK, 0, dentry, dir->mnt);
}

SEC("lsm/path_chown") int BPF_PROG(guard_chown, const struct path *path)
{
	return tg_guard_check_file(TG_GUARD_CHOWN, 0, path->dentry, path->mnt);
}

/* The attribute that gives a program capabilities. */
SEC("lsm/inode_setxattr")
int BPF_PROG(guard_setxattr, void *idmap, struct dentry *dentry, const char *name)
{
	char text[sizeof "security.capability"] = {};

	bpf_probe_read_kernel_str(text, sizeof text, name);
	if (!TG_SAME_TEXT(text, "security.capability"))
		return 0;
	/* Its mount is not known: the path begins at the root of the file system. */
	return tg_guard_check(TG_GUARD_SETCAP, 0)
		       ? -EPERM
		       : tg_guard_tell_program(TG_KERNEL_ADDRESS(dentry), 0);
}

#endif
