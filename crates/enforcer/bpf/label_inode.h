/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The label of an inode. It is in inode storage while the inode is in memory, and permanently
 * in `labels` if it differs from the label of the inode's directory.
 *
 * Every positive dentry passes d_instantiate before it can be found. An inode without a label
 * gets one there (inode_doinit_with_dentry of SELinux).
 */
#ifndef TOLLGATE_LABEL_INODE_H
#define TOLLGATE_LABEL_INODE_H

#include "address.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "doorbell.h"
#include "enforcer.h"
#include "filesystem.h"
#include "generation.h"
#include "genfs.h"
#include "holder.h"
#include "kernel.h"
#include "label_new.h"
#include "label_unwalked.h"
#include "libbpf.h"
#include "maps.h"
#include "object.h"
#include "overlay.h"
#include "plain_inode.h"
#include "share.h"
#include "socket_label.h"
#include "state.h"
#include "subject.h"
#include "subvolume.h"
#include "transition.h"

/* Gives an inode a label, unless it has one. */
static __always_inline int tg_put_label(struct inode *inode, const struct tg_inode *found)
{
	struct tg_inode *label;

	if (!(found->class | found->node) &&
	    tg_put_plain_at(TG_ADDRESS(inode), tg_identity_of(inode), TG_PLAIN_LABEL(found)))
		return 0;
	label = bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return -ENOMEM;
	}
	label->class = found->class;
	label->task_sid = found->task_sid;
	label->node = found->node;
	label->flags = found->flags;
	__sync_val_compare_and_swap(&label->sid, 0, found->sid);
	return 0;
}

/* Writes a label down, in the current task's share if there was none; `anyway`: even above the
 * share; `mounted`: tg_superblock.number. Returns 0 or -ENOSPC. */
static __noinline int tg_put_kept_label(const struct tg_label_key *key, __u32 sid, __u32 mounted,
					int anyway)
{
	struct tg_label_value value = {.sid = sid, .dirty = 1, .mounted = mounted}, *known;

	if (!key->device) {
		tg_failed(TG_FAILED_LABELS_FULL);
		return -ENOSPC;
	}
	known = bpf_map_lookup_elem(&labels, key);
	if (known) {
		value.share = known->share;
		return bpf_map_update_elem(&labels, key, &value, BPF_ANY) ? -ENOSPC : 0;
	}
	value.share = tg_own_share();
	if (tg_take(TG_ROOM_LABELS, value.share)) {
		if (!anyway)
			return -ENOSPC;
		tg_take_anyway(TG_ROOM_LABELS, value.share);
	}
	if (!bpf_map_update_elem(&labels, key, &value, BPF_ANY))
		return 0;
	tg_give(TG_ROOM_LABELS, value.share);
	tg_failed(TG_FAILED_LABELS_FULL);
	return -ENOSPC;
}

/* Keeps the label of an inode beyond its time in memory. Returns 0 or -ENOSPC. */
static __always_inline int tg_keep_label(struct inode *inode, __u32 sid, __u32 mounted, int anyway)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_unwritten dirty = {.sid = sid};

	if (tg_put_kept_label(&key, sid, mounted, anyway))
		return -ENOSPC;
	bpf_core_read(dirty.uuid, sizeof dirty.uuid, &inode->i_sb->s_uuid);
	if (bpf_map_update_elem(&unwritten, &key, &dirty, BPF_ANY))
		WRITE_ONCE(state.labels_missed, 1);
	/* This is a barrier as well: who clears it sees the entry afterwards. */
	if (!__sync_lock_test_and_set(&state.label_rings, 1))
		tg_doorbell(TG_EVENT_LABEL, sid, key.device, key.inode);
	return 0;
}

/*
 * Called before an inode can be found in another directory: its label is its own from now on.
 * Files are linked and renamed only if this succeeds. Returns 0 or -ENOSPC.
 */
static __always_inline int tg_pin_label(struct inode *inode)
{
	struct tg_inode *label = tg_label_of(inode);

	if (!label || !label->sid || label->flags & TG_INODE_DURABLE)
		return 0;
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);

	if (!superblock || superblock->behaviour != TG_FS_XATTR)
		return 0;
	if (tg_keep_label(inode, label->sid, superblock->number, 0))
		return -ENOSPC;
	label->flags |= TG_INODE_DURABLE;
	return 0;
}

/* The label of a new inode differs from its directory's: it is kept as long as the inode
 * exists. */
static __noinline int tg_keep_new_label(struct inode *inode, struct tg_inode *made, int anyway)
{
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);

	if (!superblock || superblock->behaviour != TG_FS_XATTR)
		return 0;
	if (tg_keep_label(inode, made->sid, superblock->number, anyway))
		return -ENOSPC;
	made->flags = TG_INODE_DURABLE;
	return 0;
}

/* The directory of a dentry. NULL: it is the root of its file system, or in no directory. */
static __always_inline struct inode *tg_directory(struct dentry *dentry)
{
	struct dentry *parent = dentry->d_parent;

	return parent && parent != dentry ? parent->d_inode : 0;
}

/* The label that was kept for an inode; 0: none. */
static __always_inline void tg_find_kept_label(struct inode *inode, struct tg_inode *found)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_label_value *kept = bpf_map_lookup_elem(&labels, &key);

	if (!kept)
		return;
	found->sid = kept->sid;
	found->flags = TG_INODE_DURABLE;
}

/* Whether labels of a user's files may be missing from `labels`. */
static __noinline int tg_are_labels_left(__u32 uid)
{
	__u32 user = tg_main_user(uid);
	__u32 share = user ? tg_share_of(TG_HOLDERS_USERS, user, 0) : TG_HOLDERS_MACHINE;

	/* A user with a share may have had none when the files were labelled. */
	if (user && state.shares[TG_HOLDERS_USERS].labels_left)
		return 1;
	return share < TG_SHARES && state.shares[share].labels_left;
}

/*
 * Called before a file gets another owner. If its label found no room, it has none from now
 * on, because none of the new owner's may be missing. The entry is not a label to be written:
 * the content of the file's attribute holds again when labels are next read. Returns 0 or
 * -ENOSPC.
 */
static __noinline int tg_keep_left_label(struct inode *inode)
{
	struct tg_label_value value = {.sid = SECINITSID_UNLABELED};
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);
	struct tg_label_key key = tg_label_key_of(inode);
	__u32 plain = TG_PLAIN_LABEL_SID(tg_find_plain_inode(inode));

	if (!superblock || superblock->behaviour != TG_FS_XATTR || !key.device)
		return 0;
	if (plain && plain != SECINITSID_UNLABELED)
		return 0;
	struct tg_inode *label = tg_label_of(inode);

	if (label && label->sid &&
	    (label->flags & TG_INODE_DURABLE || (label->sid & 0xffff) != SECINITSID_UNLABELED))
		return 0;
	if (!tg_are_labels_left(inode->i_uid.val) || bpf_map_lookup_elem(&labels, &key))
		return 0;
	value.share = tg_own_share();
	if (tg_take(TG_ROOM_LABELS, value.share))
		return -ENOSPC;
	if (!bpf_map_update_elem(&labels, &key, &value, BPF_NOEXIST))
		return 0;
	tg_give(TG_ROOM_LABELS, value.share);
	return -ENOSPC;
}

/* Whether the labels in an inode's subvolume were read. A subvolume may appear with all its
 * files, as a snapshot does. When its root is seen, the daemon is told. */
static __noinline int tg_is_subvolume_walked(struct inode *inode)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_label_key walked = {0, key.subvolume, key.device, 0};

	if (!key.device)
		return 0;
	if (!key.subvolume || bpf_map_lookup_elem(&labels, &walked))
		return 1;
	if (key.inode == BTRFS_FIRST_FREE_OBJECTID)
		tg_doorbell(TG_EVENT_MOUNT, key.generation, key.device, key.subvolume);
	return 0;
}

/* The label of an inode on a file system that keeps labels: its own entry, else the label of
 * its directory. An inode without an entry has the label of all directories that it is in
 * (tg_keep_moved_label). */
static __always_inline void tg_find_xattr_label(struct inode *inode, struct inode *directory,
						struct tg_superblock *superblock,
						struct tg_inode *found)
{
	struct tg_inode *above;

	if (!(superblock->flags & TG_SUPERBLOCK_WALKED)) {
		found->sid = tg_unwalked_sid(inode, directory, superblock);
		return;
	}
	if (!tg_is_subvolume_walked(inode))
		return;
	tg_find_kept_label(inode, found);
	if (found->sid || !directory ||
	    (READ_ONCE(state.labels_left) && tg_are_labels_left(inode->i_uid.val)))
		return;
	above = tg_label_of(directory);
	if (above)
		found->sid = above->sid;
}

/* A new inode where inode_init_security is never called: the task that makes it has decided its
 * label, or it has no name yet (O_TMPFILE). 0: it is not new. */
static __always_inline __u32 tg_unannounced(struct dentry *dentry, struct inode *inode,
					    struct inode *directory, __u32 class)
{
	__u32 sid;

	if (READ_ONCE(state.labels_new))
		return 0;
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	sid = tg_take_creation(task, dentry);
	if (sid)
		tg_note_made(task, inode);
	if (sid || inode->i_nlink || !directory)
		return sid;
	struct tg_inode *above = tg_label_of(directory);

	tg_new_inode_sid(task, tg_task_subject(), directory, tg_sid_above(directory, above), 0,
			 class, &sid);
	tg_note_made(task, inode);
	return sid;
}

/* Whether an inode is new (tg_take_creation) and the decision about its label is lost: its task
 * has lost its storage meanwhile (tg_make_task), or has made another inode below (ecryptfs). */
static __always_inline int tg_is_forgotten(struct dentry *dentry, struct inode *inode, __u32 class,
					   __u32 behaviour)
{
	/* The label of a file that is linked once more is not known. What a btrfs subvolume has
	 * is in the attribute of its root. */
	if (inode->i_sb->s_magic == BTRFS_SUPER_MAGIC && inode->i_ino == BTRFS_FIRST_FREE_OBJECTID)
		return 0;
	return (behaviour == TG_FS_XATTR || behaviour == TG_FS_TRANS) &&
	       !READ_ONCE(state.labels_new) && dentry->d_hash.pprev &&
	       (class == SECCLASS_DIR || inode->i_nlink == 1) && !tg_is_overlay(inode->i_sb);
}

/* The label for such an inode. It is unknown if overlayfs may have named it, or if the policy
 * permits none; but the machine goes on with the directory's label (inode_init_security). 0: it
 * is in no directory. */
static __noinline __u32 tg_determine_again(struct dentry *dentry, struct inode *inode)
{
	struct inode *directory = tg_directory(dentry);
	struct tg_inode *above;
	__u32 sid = 0;

	if (!directory)
		return 0;
	if (tg_acts_for_another())
		return SECINITSID_UNLABELED;
	if (!tg_new_dentry_sid(tg_task_subject(), directory, dentry, tg_mode_class(inode->i_mode),
			       &sid))
		return sid;
	above = tg_label_of(directory);
	return tg_subject_by_call() & TG_UNCONFINED && above ? above->sid : SECINITSID_UNLABELED;
}

/* The check is made again, because the label may be another. If it is denied, the inode has no
 * label. */
static __noinline __u32 tg_ask_again(struct dentry *dentry, struct inode *inode, __u32 sid)
{
	struct inode *directory = tg_directory(dentry);
	__u64 subject = tg_subject_by_call();

	if (!directory || subject & TG_UNCONFINED)
		return sid;
	return tg_ask_to_make(subject, directory, dentry, tg_mode_class(inode->i_mode),
			      sid & 0xffff) < 0
		       ? SECINITSID_UNLABELED
		       : sid;
}

static __noinline int tg_put_determined(struct dentry *dentry, struct inode *inode, __u32 sid)
{
	struct tg_inode made = {.sid = sid, .task_sid = tg_task_subject() & 0xffff};
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);

	if (!sid || !superblock ||
	    (!tg_inherits(tg_directory(dentry), sid, superblock) &&
	     tg_keep_new_label(inode, &made, 1)))
		return 0;
	return tg_put_label(inode, &made);
}

/* inode_doinit_with_dentry for an inode without a label. Returns 1 if it is new
 * (tg_is_forgotten). */
static __noinline int tg_first_sight(struct dentry *dentry, struct inode *inode)
{
	if (inode->i_sb->s_magic == SOCKFS_MAGIC) /* its sock has the label */
		return 0;
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);
	struct inode *directory = tg_directory(dentry);
	__u32 subject = tg_subject_by_call() & 0xffff, class = tg_mode_class(inode->i_mode);
	struct tg_inode found = {.task_sid = subject};

	if (!superblock)
		return 0;
	found.sid = tg_unannounced(dentry, inode, directory, class);
	if (found.sid) {
		if (!tg_inherits(directory, found.sid, superblock) &&
		    tg_keep_new_label(inode, &found, 1))
			return 0;
		found.flags |= tg_born(class);
		return tg_put_label(inode, &found);
	}
	if (tg_is_forgotten(dentry, inode, class, superblock->behaviour))
		return 1;
	switch (superblock->behaviour) {
	case TG_FS_XATTR:
		if (tg_is_overlay(inode->i_sb))
			found.sid = tg_real_sid(TG_KERNEL_ADDRESS(inode));
		else
			tg_find_xattr_label(inode, directory, superblock, &found);
		break;
	case TG_FS_TRANS:
		tg_transition(subject, superblock->sid, class, 0, &found.sid);
		break;
	case TG_FS_TASK:
		found.sid = subject;
		break;
	case TG_FS_GENFS:
		if (superblock->flags & TG_SUPERBLOCK_SETTABLE)
			tg_find_kept_label(inode, &found);
		if (!found.sid && class == SECCLASS_LNK_FILE &&
		    !tg_has_policycap(TG_POLICYCAP_GENFS_SECLABEL_SYMLINKS))
			found.sid = superblock->sid;
		if (!found.sid)
			tg_genfs_label(dentry, directory, superblock, &found);
		break;
	default:
		found.sid = superblock->sid;
	}
	if (found.sid)
		tg_put_label(inode, &found);
	return 0;
}

static __always_inline void tg_forget_label(struct inode *inode)
{
	struct tg_label_key key = tg_label_key_of(inode);
	struct tg_label_value *kept = bpf_map_lookup_elem(&labels, &key);
	__u32 share = kept ? kept->share : 0;

	if (kept && !bpf_map_delete_elem(&labels, &key))
		tg_give(TG_ROOM_LABELS, share);
	bpf_map_delete_elem(&unwritten, &key);
}

/* Called before an inode gets another generation number: its label is in memory alone until it
 * leaves memory. */
static __always_inline void tg_renumber(struct inode *inode)
{
	struct tg_inode *label = tg_label_of(inode);

	if (!label || !(label->flags & TG_INODE_DURABLE))
		return;
	label->flags |= TG_INODE_RENUMBERED;
	WRITE_ONCE(state.renumbered, 1);
	tg_forget_label(inode);
}

/* An inode whose label is kept leaves memory, or is deleted. */
static __noinline int tg_leave_kept(struct inode *inode, struct tg_inode *label)
{
	if (!inode->i_nlink)
		tg_forget_label(inode);
	else if (label->flags & TG_INODE_RENUMBERED)
		tg_keep_label(inode, label->sid, tg_number_of(inode->i_sb), 1);
	return 0;
}

#endif
