/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files and directories by their inode: looking them up, their attributes. */
#ifndef TOLLGATE_PROGRAMS_INODE_H
#define TOLLGATE_PROGRAMS_INODE_H

#include "../address.h"
#include "../argument.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../filesystem.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../label_overlay.h"
#include "../libbpf.h"
#include "../object.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

/* file_mask_to_av for anything but a directory */
static __always_inline __u32 tg_mask_av(int mask)
{
	__u32 av = 0;

	if (mask & MAY_EXEC)
		av |= FILE__EXECUTE;
	if (mask & MAY_READ)
		av |= FILE__READ;
	if (mask & MAY_APPEND)
		av |= FILE__APPEND;
	else if (mask & MAY_WRITE)
		av |= FILE__WRITE;
	return av;
}

static __always_inline __u32 tg_directory_mask_av(int mask)
{
	__u32 av = 0;

	if (mask & MAY_EXEC)
		av |= DIR__SEARCH;
	if (mask & MAY_READ)
		av |= DIR__READ;
	if (mask & MAY_WRITE)
		av |= DIR__WRITE;
	return av;
}

/* What a mask without MAY_APPEND asks for, in the form of the access cache: the same of directories
 * and of all other inodes. */
static __always_inline __u32 tg_mask_places(int mask)
{
	return (mask & MAY_READ ? FILE__READ : 0) | (mask & MAY_WRITE ? FILE__WRITE : 0) |
	       (mask & MAY_EXEC ? TG_HOT_EXECUTE : 0);
}

_Static_assert(FILE__READ == DIR__READ && FILE__WRITE == DIR__WRITE, "classes.txt");

static __always_inline int tg_check_mask(struct inode *inode, int mask)
{
	int directory = (inode->i_mode & S_IFMT) == S_IFDIR;
	__u32 av = directory ? tg_directory_mask_av(mask) : tg_mask_av(mask);
	__u32 hot = directory ? tg_how_hot(av, 1) : tg_how_hot(av, 0), how = 0;
	__u64 key = TG_KEY(inode);

	if (!av || tg_is_everybodys(key, hot))
		return 0;
	if (mask & MAY_ACCESS)
		how |= TG_FROM_ACCESS;
	if (mask & MAY_NOT_BLOCK)
		how |= TG_NOT_BLOCK;
	return tg_decide_access(inode, 0, key, av, hot | how);
}

#define TG_MAY_ANY (MAY_EXEC | MAY_READ | MAY_WRITE | MAY_APPEND)

/* All but the most frequent case. It is a function with the hook's arguments, because what it needs
 * of registers and of the stack each call of the hook would save. */
static __noinline int tg_permit(unsigned long long *arguments)
{
	struct inode *inode = (void *)arguments[0];
	int mask = arguments[1];

	if (mask & TG_MAY_ANY && !(mask & MAY_APPEND) &&
	    tg_is_everybodys(TG_KEY(inode), tg_mask_places(mask)))
		return 0;
	return tg_check_mask(inode, mask);
}

/* selinux_inode_permission */
SEC("lsm/inode_permission") int BPF_PROG(inode_permission, struct inode *inode, int mask)
{
	/* Each directory of a path is searched. */
	if ((mask & TG_MAY_ANY) == MAY_EXEC && tg_is_everybodys(TG_KEY(inode), TG_HOT_EXECUTE))
		return 0;
	return tg_permit(ctx);
}

/* dentry_has_perm */
static __always_inline int tg_check_dentry(struct dentry *dentry, __u32 av)
{
	struct inode *inode = dentry->d_inode;

	return inode ? tg_check_inode(inode, dentry, av, 0) : 0;
}

SEC("lsm/inode_readlink") int BPF_PROG(inode_readlink, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__READ);
}

SEC("lsm/inode_follow_link")
int BPF_PROG(inode_follow_link, struct dentry *dentry, struct inode *inode, bool rcu)
{
	return tg_check_at(inode, dentry, FILE__READ, 0, rcu ? TG_NOT_BLOCK : 0);
}

SEC("lsm/inode_getattr") int BPF_PROG(inode_getattr, const struct path *path)
{
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;

	return inode ? tg_check_path(inode, path, FILE__GETATTR, 0) : 0;
}

/* selinux_inode_setattr */
static __always_inline __u32 tg_setattr_av(__u32 valid)
{
	/* ATTR_FORCE comes with changes that the kernel makes by itself: ATTR_KILL_SUID after a
	 * write. */
	if (valid & ATTR_FORCE) {
		valid &= ~(ATTR_KILL_SUID | ATTR_KILL_SGID | ATTR_MODE | ATTR_FORCE);
		if (!valid)
			return 0;
	}
	if (valid &
	    (ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_ATIME_SET | ATTR_MTIME_SET | ATTR_TIMES_SET))
		return FILE__SETATTR;
	if ((valid & (ATTR_SIZE | ATTR_FILE)) == ATTR_SIZE)
		return FILE__WRITE | FILE__OPEN;
	return FILE__WRITE;
}

/* A file is to get another owner. */
static __always_inline int tg_check_owner(struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;
	int result = tg_check_dentry(dentry, FILE__SETATTR);

	if (result || !inode || !READ_ONCE(state.labels_left))
		return result;
	return tg_keep_left_label(inode) ? -ENOSPC : 0;
}

/* A function of its own, for the registers that it needs. */
static __noinline int tg_check_written(struct dentry *dentry, __u32 av)
{
	struct inode *inode = dentry->d_inode;
	__u64 key = TG_KEY(inode);
	__u32 hot = tg_how_hot(av, 0);

	if (!inode || tg_is_everybodys(key, hot))
		return 0;
	return tg_decide_access(inode, dentry, key, av, hot);
}

SEC("lsm/inode_setattr") int inode_setattr(unsigned long long *ctx)
{
	struct dentry *dentry;
	struct iattr *attributes;

	if (tg_kernel.setattr_mapped) {
		dentry = TG_ARGUMENT(ctx, 1);
		attributes = TG_ARGUMENT(ctx, 2);
	} else {
		dentry = TG_ARGUMENT(ctx, 0);
		attributes = TG_ARGUMENT(ctx, 1);
	}
	__u32 valid = attributes->ia_valid, av = tg_setattr_av(valid);

	/* For most attributes the permission is known at compile time. */
	if (av == FILE__SETATTR)
		return valid & ATTR_UID ? tg_check_owner(dentry)
					: tg_check_dentry(dentry, FILE__SETATTR);
	if (av == FILE__WRITE)
		return tg_check_dentry(dentry, FILE__WRITE);
	return av ? tg_check_written(dentry, av) : 0;
}

/* The first bytes of an extended attribute's name, as many as the longest that matters has. */
union tg_xattr {
	char text[32];
	__u64 word[4];
};
enum tg_xattr_kind { TG_XATTR_OTHER, TG_XATTR_LABEL, TG_XATTR_USER };

static __noinline int tg_xattr_kind_of(const char *name)
{
	static const union tg_xattr label = {.text = "security.bpf.tollgate"};
	static const union tg_xattr user = {.text = "user."};
	union tg_xattr given = {};

	/* Most names differ in the first eight bytes, and a string is copied byte by byte. What is
	 * behind the end of a short name is read as well, and does not matter. */
	if (!bpf_probe_read_kernel(&given.word[0], sizeof given.word[0], name) &&
	    given.word[0] != label.word[0])
		return (given.word[0] ^ user.word[0]) << 24 ? TG_XATTR_OTHER : TG_XATTR_USER;
	bpf_probe_read_kernel_str(given.text, sizeof given.text, name);
	if (!((given.word[0] ^ user.word[0]) << 24))
		return TG_XATTR_USER;
	/* Attributes with this prefix are the daemon's, including the checkpoint. */
	if ((given.word[0] ^ label.word[0]) | (given.word[1] ^ label.word[1]) |
	    (given.word[2] ^ label.word[2]) << 24)
		return TG_XATTR_OTHER;
	return TG_XATTR_LABEL;
}

/*
 * selinux_inode_setxattr, selinux_inode_removexattr. Only the daemon writes the attribute of
 * labels; it has decided before for whom and what. Nobody else may, not even unconfined
 * domains: 6.1 lets the owner of a file write any security attribute, because it takes the
 * absence of a denial by BPF for a module's consent. Overlayfs may, on its copies. A user
 * attribute counts as content of the file (xattr_permission).
 */
static __always_inline int tg_check_setxattr(struct dentry *dentry, const char *name)
{
	switch (tg_xattr_kind_of(name)) {
	case TG_XATTR_LABEL:
		if (tg_is_daemon(bpf_get_current_task_btf()))
			return 0;
		return tg_copies_label(dentry);
	case TG_XATTR_USER:
		return tg_check_dentry(dentry, FILE__SETATTR | FILE__WRITE);
	}
	return tg_check_dentry(dentry, FILE__SETATTR);
}

SEC("lsm/inode_setxattr")
int BPF_PROG(inode_setxattr, void *idmap, struct dentry *dentry, const char *name)
{
	return tg_check_setxattr(dentry, name);
}

SEC("lsm/inode_removexattr")
int BPF_PROG(inode_removexattr, void *idmap, struct dentry *dentry, const char *name)
{
	return tg_check_setxattr(dentry, name);
}

SEC("lsm/inode_getxattr")
int BPF_PROG(inode_getxattr, struct dentry *dentry, const char *name)
{
	if (tg_tell_label(dentry))
		return -ENODATA;
	if (READ_ONCE(state.no_lookups) && tg_xattr_kind_of(name) == TG_XATTR_USER)
		return tg_check_dentry(dentry, FILE__GETATTR | FILE__READ);
	return tg_check_dentry(dentry, FILE__GETATTR);
}

SEC("lsm/inode_listxattr") int BPF_PROG(inode_listxattr, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__GETATTR);
}

/* Access control lists. Before 6.2 they pass inode_setxattr and the like. */
SEC("lsm/inode_set_acl") int BPF_PROG(inode_set_acl, void *idmap, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__SETATTR);
}

SEC("lsm/inode_remove_acl") int BPF_PROG(inode_remove_acl, void *idmap, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__SETATTR);
}

SEC("lsm/inode_get_acl") int BPF_PROG(inode_get_acl, void *idmap, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__GETATTR);
}

/* FS_IOC_FSSETXATTR and the like, since 6.17 */
SEC("lsm/inode_file_setattr") int BPF_PROG(inode_file_setattr, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__SETATTR);
}

SEC("lsm/inode_file_getattr") int BPF_PROG(inode_file_getattr, struct dentry *dentry)
{
	return tg_check_dentry(dentry, FILE__GETATTR);
}

enum tg_notify { /* FS_* of include/linux/fsnotify_backend.h */
		 TG_NOTIFY_READS = 0x1 | 0x10 | 0x20000 | 0x100000,
		 TG_NOTIFY_PERMISSION = 0x10000 | 0x20000 | 0x40000 | 0x100000,
};
enum tg_notify_object { TG_NOTIFY_INODE, TG_NOTIFY_MOUNT, TG_NOTIFY_SUPERBLOCK, TG_NOTIFY_MNTNS };

/* Whether the current task may watch a whole file system. */
static __noinline int tg_watch_superblock(struct dentry *dentry)
{
	__u64 subject = tg_subject_by_call();
	__u32 sid = 0;

	if (subject & TG_UNCONFINED)
		return 0;
	if (tg_superblock_sid(dentry->d_sb, &sid))
		return -EACCES;
	struct tg_request request = {
		.source = subject,
		.target = sid,
		.class = SECCLASS_FILESYSTEM,
		.av = FILESYSTEM__WATCH,
		.manager = TG_MANAGER_FILESYSTEM,
		.object = TG_OBJECT_INODE,
		.dentry = TG_ADDRESS(dentry),
	};

	return tg_ask(&request);
}

/* selinux_path_notify: fanotify, inotify and dnotify */
SEC("lsm/path_notify")
int BPF_PROG(path_notify, const struct path *path, __u64 mask, unsigned int object)
{
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;
	__u32 av = FILE__WATCH;
	int result = 0;

	if (!inode)
		return 0;
	if (object == TG_NOTIFY_MOUNT)
		av = FILE__WATCH_MOUNT;
	else if (object == TG_NOTIFY_MNTNS) /* a file of the namespaces' file system */
		av = FILE__WATCH_MOUNTNS;
	else if (object == TG_NOTIFY_SUPERBLOCK) {
		av = FILE__WATCH_SB;
		result = tg_watch_superblock(dentry);
	} else if (object != TG_NOTIFY_INODE)
		return -EINVAL;
	if (READ_ONCE(state.no_lookups))
		av |= FILE__READ;
	if (mask & TG_NOTIFY_PERMISSION)
		av |= FILE__WATCH_WITH_PERM;
	if (mask & TG_NOTIFY_READS)
		av |= FILE__WATCH_READS;
	return result ? result : tg_check_path(inode, path, av, 0);
}

/* An inode's memory becomes another inode. */
SEC("lsm/inode_alloc_security") int BPF_PROG(inode_alloc_security, struct inode *inode)
{
	tg_forget_access(TG_KEY(inode));
	tg_forget_plain_inode(TG_ADDRESS(inode));
	return 0;
}

#endif
