/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changes of a directory: objects that are made, linked, renamed, removed. */
#ifndef TOLLGATE_PROGRAMS_DIRECTORY_H
#define TOLLGATE_PROGRAMS_DIRECTORY_H

#include "../active.h"
#include "../address.h"
#include "../cache.h"
#include "../compiler.h"
#include "../filesystem.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../label_new.h"
#include "../libbpf.h"
#include "../made_before.h"
#include "../maps.h"
#include "../object.h"
#include "../plain_inode.h"
#include "../state.h"
#include "../subject.h"
#include "../subvolume.h"
#include "classes.h"
#include "enforcer.h"

#define XFS_SUPER_MAGIC 0x58465342

/* The SID of what the current task makes, with TG_SID_SURVIVAL, or -EACCES. `own`: its own subject.
 */
static __noinline int tg_sid_to_make(struct inode *dir, struct dentry *dentry, __u32 class,
				     __u64 own)
{
	__u32 sid = 0;

	return tg_new_dentry_sid(own, dir, dentry, class, &sid) ? -EACCES : sid;
}

/* An unconfined task makes something, which is labelled all the same. */
static __always_inline int tg_create_unasked(struct inode *dir, struct dentry *dentry, __u32 class,
					     __u64 own)
{
	if (READ_ONCE(state.labels_new))
		return 0;
	int sid = tg_sid_to_make(dir, dentry, class, own);

	if (sid > 0)
		tg_put_creation(dir, dentry, sid);
	return 0;
}

/* The permissions on a directory for any change. `write` is checked by inode_permission before,
 * but that hook need not be attached. */
#define TG_CHANGE (DIR__WRITE | DIR__SEARCH)

/* A function of its own, for the stack. */
static __noinline int tg_may_make(__u64 subject, struct inode *dir, struct dentry *dentry,
				  __u32 class, __u32 sid)
{
	return tg_ask_to_make(subject, dir, dentry, class, sid);
}

/* The SID of what is made, with TG_SID_SURVIVAL, or -EACCES. */
static __always_inline int tg_ask_anew(__u64 subject, struct inode *dir, struct dentry *dentry,
				       __u32 class, __u64 own)
{
	__u32 epoch = READ_ONCE(state.epoch);
	int sid = tg_sid_to_make(dir, dentry, class, own), lasting;

	if (sid <= 0)
		return -EACCES;
	lasting = tg_may_make(subject, dir, dentry, class, sid);
	if (lasting < 0)
		return -EACCES;
	if (lasting && own == subject)
		tg_keep_made(dir, own, class, dentry, sid, epoch);
	return sid;
}

/* may_create */
static __always_inline int tg_may_create(struct inode *dir, struct dentry *dentry, __u32 class)
{
	int result = tg_check_inode(dir, dentry, DIR__ADD_NAME | TG_CHANGE, 1), sid;

	if (result)
		return result;
	__u64 own = tg_task_subject(), subject = tg_subject_of(own);

	if (subject & TG_UNCONFINED)
		return tg_create_unasked(dir, dentry, class, own);
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	sid = own == subject ? tg_made_before(task, dir, own, class, &dentry->d_name) : 0;
	if (!sid)
		sid = tg_ask_anew(subject, dir, dentry, class, own);
	if (sid <= 0)
		return -EACCES;
	result = tg_put_creation(dir, dentry, sid);
	return !result ? 0 : result == -ENOSPC ? -ENOSPC : -EACCES;
}

SEC("lsm/inode_create") int BPF_PROG(inode_create, struct inode *dir, struct dentry *dentry)
{
	return tg_may_create(dir, dentry, SECCLASS_FILE);
}

SEC("lsm/inode_mkdir") int BPF_PROG(inode_mkdir, struct inode *dir, struct dentry *dentry)
{
	return tg_may_create(dir, dentry, SECCLASS_DIR);
}

SEC("lsm/inode_symlink") int BPF_PROG(inode_symlink, struct inode *dir, struct dentry *dentry)
{
	return tg_may_create(dir, dentry, SECCLASS_LNK_FILE);
}

SEC("lsm/inode_mknod")
int BPF_PROG(inode_mknod, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	return tg_may_create(dir, dentry, tg_mode_class(mode));
}

/* The second half of may_link, and of the checks of may_rename on an object. `directory_av` is
 * for directories, `av` for other objects. */
static __always_inline int tg_check_entry(struct dentry *dentry, __u32 av, __u32 directory_av)
{
	struct inode *inode = dentry->d_inode;

	if (!inode)
		return 0;
	if ((inode->i_mode & S_IFMT) == S_IFDIR)
		return tg_check_inode(inode, dentry, directory_av, 1);
	return tg_check_inode(inode, dentry, av, 0);
}

static __always_inline int tg_may_remove(struct inode *dir, struct dentry *dentry)
{
	int result = tg_check_inode(dir, dentry, DIR__REMOVE_NAME | TG_CHANGE, 1);

	return result ? result : tg_check_entry(dentry, FILE__UNLINK, DIR__RMDIR);
}

SEC("lsm/inode_unlink") int BPF_PROG(inode_unlink, struct inode *dir, struct dentry *dentry)
{
	return tg_may_remove(dir, dentry);
}

SEC("lsm/inode_rmdir") int BPF_PROG(inode_rmdir, struct inode *dir, struct dentry *dentry)
{
	return tg_may_remove(dir, dentry);
}

/* The SID of an object, which is nearly always plain. */
static __always_inline __u32 tg_moved_sid(struct inode *inode)
{
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);
	__u32 sid = label ? label->sid : 0;

	if (!sid)
		sid = TG_PLAIN_LABEL_SID(tg_find_plain_inode(inode));
	return sid ? sid : tg_object_of(inode).sid;
}

/*
 * An object that is found in another directory from now on keeps its label. Nothing is needed
 * for that if the directory has this label: an object without an entry has the label of all
 * directories that it is in, because relabelling a directory first writes down the labels of
 * its files. During the first labelling, a directory may not have its own label yet.
 */
static __noinline int tg_keep_moved_label(struct dentry *dentry, struct inode *dir, int only_name)
{
	struct inode *inode = dentry->d_inode;
	struct tg_inode *above = tg_label_of(dir);

	tg_note_change(dir->i_sb);
	tg_tell_active(dir, above);
	if (!inode)
		return 0;
	if (above && tg_moved_sid(inode) == above->sid &&
	    (READ_ONCE(state.labelling_complete) || (only_name && inode->i_nlink == 1)))
		return 0;
	return tg_pin_label(inode) ? -ENOSPC : 0;
}

SEC("lsm/inode_link")
int BPF_PROG(inode_link, struct dentry *old_dentry, struct inode *dir, struct dentry *new_dentry)
{
	int result = tg_check_inode(dir, new_dentry, DIR__ADD_NAME | TG_CHANGE, 1);

	if (!result)
		result = tg_check_entry(old_dentry, FILE__LINK, DIR__LINK);
	if (result)
		return result;
	tg_forget_creation();
	return tg_keep_moved_label(old_dentry, dir, 0);
}

static __always_inline __u32 tg_pair(const struct dentry *one, const struct dentry *other)
{
	return TG_ADDRESS(one) ^ TG_ADDRESS(other) * 31;
}

/* Whether the label of an inode has yet to be written to its attribute. */
static __always_inline int tg_is_unwritten(struct inode *inode)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_label_value *kept = bpf_map_lookup_elem(&labels, &key);

	return kept && kept->dirty;
}

/*
 * For two files on xfs that change places, no time shows this after a crash, which would give
 * each the label of its new directory. So they change places only after the daemon has written
 * their labels to their attributes. For directories, xfs changes the times. The kernel does
 * not distinguish an exchange from other renames, but calls the hook a second time with the
 * files swapped.
 */
static __noinline int tg_may_exchange(struct dentry *old_dentry, struct dentry *new_dentry)
{
	struct inode *one = old_dentry->d_inode, *other = new_dentry->d_inode;

	if (!one || !other || tg_subject_by_call() & TG_UNCONFINED)
		return 0;
	if ((one->i_mode & S_IFMT) == S_IFDIR || (other->i_mode & S_IFMT) == S_IFDIR)
		return 0;
	struct tg_task *task = tg_make_task(bpf_get_current_task_btf());

	if (!task)
		return -ENOMEM;
	if (task->renamed != tg_pair(new_dentry, old_dentry)) {
		task->renamed = tg_pair(old_dentry, new_dentry);
		return 0;
	}
	task->renamed = 0;
	return tg_is_unwritten(one) || tg_is_unwritten(other) ? -EBUSY : 0;
}

/* may_rename, including what inode_permission checks before on a directory that moves. An
 * exchange is two renames: the kernel calls this for each. */
SEC("lsm/inode_rename")
int BPF_PROG(inode_rename, struct inode *old_dir, struct dentry *old_dentry, struct inode *new_dir,
	     struct dentry *new_dentry)
{
	__u32 replaces = new_dentry->d_inode ? DIR__REMOVE_NAME : 0;
	int result, moves = old_dir != new_dir;

	result = tg_check_inode(old_dir, old_dentry, DIR__REMOVE_NAME | TG_CHANGE, 1);
	if (!result)
		result = tg_check_entry(old_dentry, FILE__RENAME,
					moves ? DIR__RENAME | DIR__REPARENT | DIR__WRITE
					      : DIR__RENAME);
	if (!result)
		result = tg_check_inode(new_dir, new_dentry, DIR__ADD_NAME | TG_CHANGE | replaces,
					1);
	if (!result && replaces)
		result = tg_check_entry(new_dentry, FILE__UNLINK, DIR__RMDIR);
	if (!result && moves)
		result = tg_keep_moved_label(old_dentry, new_dir, 1);
	if (!result && moves && replaces && old_dir->i_sb->s_magic == XFS_SUPER_MAGIC)
		result = tg_may_exchange(old_dentry, new_dentry);
	return result;
}

#endif
