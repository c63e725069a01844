/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The label of an inode that is being made. */
#ifndef TOLLGATE_LABEL_NEW_H
#define TOLLGATE_LABEL_NEW_H

#include "active.h"
#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "filesystem.h"
#include "holder.h"
#include "kernel.h"
#include "label_unwalked.h"
#include "libbpf.h"
#include "maps.h"
#include "object.h"
#include "overlay.h"
#include "plain_inode.h"
#include "request.h"
#include "share.h"
#include "state.h"
#include "subject.h"
#include "transition.h"
#include "trusted.h"

/* The current task's storage, which is made if it has none. */
static __always_inline struct tg_task *tg_make_own_task(void)
{
	return tg_make_task(bpf_get_current_task_btf());
}

static __always_inline __u64 tg_current_cred(void)
{
	return TG_KERNEL_ADDRESS(TG_UNTRUSTED(bpf_get_current_task_btf(), task_struct)->cred);
}

static __always_inline __u64 tg_current_real_cred(void)
{
	return TG_KERNEL_ADDRESS(TG_UNTRUSTED(bpf_get_current_task_btf(), task_struct)->real_cred);
}

/* Whether the current task acts with these credentials, which are not its own. No other
 * credentials can be at their address, because the task still holds them. */
static __always_inline int tg_acts_with(__u64 cred)
{
	return cred == tg_current_cred() && cred != tg_current_real_cred();
}

/* Records the label of what the current task makes next with its present credentials, as
 * overlayfs has named it (dentry_create_files_as, inode_copy_up). */
static __always_inline void tg_name_next(struct tg_task *task, __u64 cred, __u32 sid)
{
	task->create_cred_sid = sid;
	task->create_cred = cred;
}

/* The current task has made an inode: the recorded label holds for no other. */
static __always_inline void tg_note_made(struct tg_task *task, struct inode *inode)
{
	if (!task)
		return;
	task->made = TG_ADDRESS(inode);
	if (__builtin_expect(!task->create_cred, 1))
		return;
	if (tg_acts_with(task->create_cred))
		task->made |= TG_MADE_NAMED;
	task->create_cred = 0;
}

/* The SID of a directory in which something is made; `above` is its storage. 0: it has none. */
static __always_inline __u32 tg_sid_above(struct inode *directory, const struct tg_inode *above)
{
	__u32 sid;

	if (above && above->sid)
		return above->sid;
	/* The directory is on a file system with a single label, and was in memory before the
	 * programs were attached. */
	sid = tg_unseen_sid(directory);
	return sid == SECINITSID_UNLABELED ? 0 : sid;
}

/* selinux_determine_inode_label. `own` is the current task's own subject. */
static __always_inline int tg_determine_sid(const struct tg_task *task, __u64 own,
					    struct inode *directory, __u32 above, __u64 name,
					    __u32 class, __u32 *sid)
{
	*sid = tg_mount_context(directory->i_sb);
	if (*sid)
		return 0;
	if (task && task->create_cred && tg_acts_with(task->create_cred)) {
		*sid = task->create_cred_sid;
		return 0;
	}
	/* The labels recorded in a storage may have been lost with it. */
	if (!(own & TG_UNCONFINED) && tg_acts_for_another() &&
	    tg_has_lost(task, bpf_get_current_task())) {
		*sid = SECINITSID_UNLABELED;
		return 0;
	}
	if (task && task->create_sid) {
		struct tg_superblock *superblock = tg_superblock_of(directory->i_sb);

		if (superblock && superblock->flags & TG_SUPERBLOCK_SETTABLE) {
			*sid = task->create_sid;
			return 0;
		}
	}
	if (!above)
		return -EACCES;
	return tg_transition(own & 0xffff, above, class, name, sid);
}

/*
 * The SID of what the current task makes in a directory with the label `above`. `name` is as
 * in tg_transition. Enforcement depends on objects that are made in a directory on which it
 * depends. Returns -EACCES if the directory has no label, or the policy permits none.
 */
static __always_inline int tg_new_inode_sid(const struct tg_task *task, __u64 own,
					    struct inode *directory, __u32 above, __u64 name,
					    __u32 class, __u32 *sid)
{
	int result = tg_determine_sid(task, own, directory, above, name, class, sid);

	*sid |= above & TG_SID_SURVIVAL;
	return result;
}

/* The SID of what the current task makes by the name of a dentry. Returns 0 or -EACCES. */
static __always_inline int tg_new_dentry_sid(__u64 own, struct inode *directory,
					     struct dentry *dentry, __u32 class, __u32 *sid)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	struct tg_inode *above = tg_label_of(directory);

	return tg_new_inode_sid(task, own, directory, tg_sid_above(directory, above),
				TG_NAME_ADDRESS(dentry), class, sid);
}

/* Whether `subject` may make an object with this label, and the label is permitted on this file
 * system. Returns -EACCES, 0, or 1: it may, until the policy changes. */
static __always_inline int tg_ask_to_make(__u64 subject, struct inode *dir, struct dentry *dentry,
					  __u32 class, __u32 sid)
{
	__u32 filesystem = 0;
	struct tg_request request = {
		.source = subject,
		.target = sid,
		.class = class,
		.av = FILE__CREATE,
		.manager = TG_MANAGER_DIRECTORY,
		.object = TG_OBJECT_INODE,
		.dentry = TG_ADDRESS(dentry),
	};

	if (tg_ask(&request) || tg_superblock_sid(dir->i_sb, &filesystem))
		return -EACCES;
	__u32 create = request.allowed & FILE__CREATE;

	request.source = sid;
	request.target = filesystem;
	request.class = SECCLASS_FILESYSTEM;
	request.av = FILESYSTEM__ASSOCIATE;
	if (tg_ask(&request))
		return -EACCES;
	return create && request.allowed & FILESYSTEM__ASSOCIATE;
}

/* Whether a directory has this label. */
static __always_inline int tg_is_labelled(struct inode *directory, __u32 sid)
{
	struct tg_inode *label = directory ? tg_label_of(directory) : 0;

	return label && label->sid == sid;
}

/* Whether what is made in a directory has this label without an entry in `labels`. */
static __always_inline int tg_inherits(struct inode *directory, __u32 sid,
				       const struct tg_superblock *superblock)
{
	return superblock->context == sid ||
	       (tg_is_labelled(directory, sid) && !tg_keeps_all(superblock));
}

/* A hash that distinguishes a dentry's name from others. */
static __always_inline __u64 tg_name_word(struct dentry *dentry)
{
	return (__u64)dentry->d_name.hash << 32 | dentry->d_name.len;
}

/* Whether the label of what is made in a directory is to be kept, and would find no place. */
static __noinline int tg_lacks_label(struct inode *directory, __u32 sid)
{
	struct tg_superblock *superblock = tg_superblock_of(directory->i_sb);

	if (!superblock || superblock->behaviour != TG_FS_XATTR ||
	    tg_inherits(directory, sid, superblock))
		return 0;
	return tg_is_full(TG_ROOM_LABELS, tg_own_share());
}

/*
 * inode_create and the like have decided the label of the inode that `dentry` gets. If
 * inode_init_security is never called (kernels since 6.6 on which no other module reserves an
 * attribute), d_instantiate takes it from here, and can no longer refuse anything. Returns 0,
 * -ENOMEM, -ENOSPC, or -EOPNOTSUPP: see tg_take_creation.
 */
static __always_inline int tg_put_creation(struct inode *directory, struct dentry *dentry,
					   __u32 sid)
{
	if (READ_ONCE(state.labels_new))
		return 0;
	tg_note_change(directory->i_sb);
	tg_tell_active(directory, tg_label_of(directory));
	if (directory->i_flags & S_CASEFOLD)
		return tg_is_labelled(directory, sid) ? 0 : -EOPNOTSUPP;
	if (tg_lacks_label(directory, sid)) {
		tg_failed(TG_FAILED_SHARE + TG_ROOM_LABELS);
		return -ENOSPC;
	}
	struct tg_task *task = tg_make_own_task();

	if (!task)
		return -ENOMEM;
	task->creation.dentry = TG_ADDRESS(dentry);
	task->creation.name = tg_name_word(dentry);
	task->creation.sid = sid;
	return 0;
}

/*
 * The label that was decided for the inode of a dentry; 0: none, because the inode is not new.
 *
 * A decision may stay behind if a creation failed, or found the file to exist already
 * (lookup_open calls inode_create before it looks). Another dentry at the same address has
 * another name, or gets its inode from a lookup, and is hashed only after that
 * (d_splice_alias, __d_add). A dentry for a creation is hashed, because its name was looked up
 * before. But directories that ignore case do not remember names that they lack: there only
 * the directory's label is given.
 */
static __always_inline __u32 tg_take_creation(struct tg_task *task, struct dentry *dentry)
{
	if (!task || !dentry->d_hash.pprev || task->creation.dentry != TG_ADDRESS(dentry) ||
	    task->creation.name != tg_name_word(dentry))
		return 0;
	task->creation.dentry = 0;
	return task->creation.sid;
}

/* A dentry is given an inode that is not new. Where inode_init_security is called, nobody takes a
 * decision from a task (tg_unannounced), and no storage has to be looked up. */
static __always_inline void tg_forget_creation(void)
{
	if (READ_ONCE(state.labels_new))
		return;
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (task)
		task->creation.dentry = 0;
}

#endif
