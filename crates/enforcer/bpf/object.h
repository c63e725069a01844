/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The object of a check: the label of an inode, and the check of an access to it. */
#ifndef TOLLGATE_OBJECT_H
#define TOLLGATE_OBJECT_H

#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "overlay.h"
#include "plain_inode.h"
#include "request.h"
#include "socket_label.h"
#include "state.h"
#include "subject.h"
#include "trusted.h"

/* inode_mode_to_security_class: four bits per type of inode, which are the class's distance
 * from file. There are no branches, because the verifier would follow each of seven ways
 * through everything that comes after. */
#define TG_MODE_CLASS(mode, class) ((__u64)((class) - SECCLASS_FILE) << ((mode) >> 12) * 4)
#define TG_MODE_CLASSES                                                                            \
	(TG_MODE_CLASS(S_IFSOCK, SECCLASS_SOCK_FILE) | TG_MODE_CLASS(S_IFLNK, SECCLASS_LNK_FILE) | \
	 TG_MODE_CLASS(S_IFBLK, SECCLASS_BLK_FILE) | TG_MODE_CLASS(S_IFDIR, SECCLASS_DIR) |        \
	 TG_MODE_CLASS(S_IFCHR, SECCLASS_CHR_FILE) | TG_MODE_CLASS(S_IFIFO, SECCLASS_FIFO_FILE))

static __always_inline __u32 tg_mode_class(umode_t mode)
{
	__u64 place = mode >> 12 << 2 & 63;

	TG_OPAQUE(place);
	return SECCLASS_FILE + (TG_MODE_CLASSES >> place & 15);
}

struct tg_object {
	__u32 sid, class;
};

/*
 * The SID of an inode that has no storage: it is plain, or has no label, for example because it was
 * in memory before the programs were attached. Then it is that of its file system if all files
 * there have the same, or that of the inode it stands for.
 */
static __noinline __u32 tg_unseen_sid(struct inode *inode)
{
	struct super_block *sb = tg_sb_of(inode);
	__u64 identity = tg_identity(inode->i_ino, inode->i_generation, TG_ADDRESS(sb));
	__u32 sid = TG_PLAIN_LABEL_SID(tg_find_plain_at(TG_ADDRESS(inode), identity));

	if (sid)
		return sid;
	struct tg_superblock *superblock = tg_superblock_of(sb);

	sid = tg_is_overlay(sb) ? tg_real_sid(TG_KERNEL_ADDRESS(inode)) : 0;
	if (sid)
		return sid;
	if (superblock && superblock->behaviour == TG_FS_GENFS && !superblock->node)
		return superblock->sid;
	/* For an unconfined task this is no failure. */
	if (READ_ONCE(state.labelling_complete) && !(tg_task_subject() & TG_UNCONFINED))
		tg_met_unlabelled(inode->i_ino, sb->s_dev);
	return SECINITSID_UNLABELED;
}

/* The label of an inode. Without one it is unlabelled, as in SELinux (SECINITSID_UNLABELED). */
static __always_inline struct tg_object tg_object_of(struct inode *inode)
{
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);
	struct tg_object object = {SECINITSID_UNLABELED, tg_mode_class(inode->i_mode)};
	__u64 socket = object.class == SECCLASS_SOCK_FILE
			       ? tg_find_socket_label(TG_KERNEL_ADDRESS(inode))
			       : 0;

	if (socket) {
		object.sid = socket;
		object.class = socket >> 32;
	} else if (label && label->sid) {
		object.sid = label->sid;
		if (label->class)
			object.class = label->class;
	} else {
		object.sid = tg_unseen_sid(inode);
	}
	__u32 context = tg_mount_context(tg_sb_of(inode));

	if (context)
		object.sid = context;
	return object;
}

static __always_inline void tg_name_object(struct tg_request *request, struct inode *inode)
{
	struct tg_object object = tg_object_of(inode);

	request->target = object.sid;
	request->class = object.class;
	request->manager = object.class == SECCLASS_DIR ? TG_MANAGER_DIRECTORY : TG_MANAGER_FILE;
}

/* The part of `allowed` that every live confined subject has on an object, beside the source
 * itself, which has `own`. */
static __always_inline __u32 tg_any_allowed(struct tg_request *request, __u32 own, __u32 allowed)
{
	request->quiet = 1;
	for (__u32 i = 0; i < TG_LIVE; i++) {
		/* The lower half, without TG_LIVE_COMING. */
		request->source = READ_ONCE(*(__u16 *)&state.live[i]);
		if (!request->source)
			break;
		if (request->source == own)
			continue;
		tg_ask(request);
		allowed &= request->allowed;
	}
	return allowed;
}

/* Stores an answer about an inode in the access cache. Everything is taken from the request,
 * because the stack is small. */
static __always_inline void tg_remember_answer(struct tg_request *request)
{
	__u64 key = tg_address_key(request->inode), any;
	int directory = request->class == SECCLASS_DIR;
	__u32 own = request->source, allowed = request->allowed;

	__u64 above = (__u64)own - TG_SID_CANARY, below = TG_SID_CANARY - (__u64)own;

	/* Without a branch of its own, which the verifier would follow in each program. */
	TG_OPAQUE(above);
	/* Statistics count the checks that reach tg_ask, so all must reach it then. The canary
	 * has no permissions, which says nothing about others. */
	if (READ_ONCE(state.statistics) | !((above | below) >> 63))
		return;
	if (own)
		tg_remember_access(key, tg_way(own), (__u64)own << TG_ACCESS_SID,
				   tg_hot(allowed, directory), request->epoch);
	/* This comes before `live` is read: a subject that becomes live later changes it. */
	any = READ_ONCE(state.any);
	if (any)
		tg_remember_access(key, TG_ANY_WAY, any,
				   tg_hot(tg_any_allowed(request, own, allowed), directory),
				   request->epoch);
}

/* Stores what the one who makes an inode may do to it: he nearly always opens it next. */
static __always_inline int tg_remember_new(struct inode *inode, __u64 subject, __u32 sid,
					   __u32 class)
{
	struct tg_request request = {
		.source = subject,
		.target = sid,
		.class = class,
		.manager = TG_MANAGER_FILE,
		.inode = TG_ADDRESS(inode),
		.epoch = READ_ONCE(state.epoch),
	};

	/* No question is counted that nobody has. */
	if (READ_ONCE(state.statistics))
		return 0;
	tg_avc_has_perm(&request);
	tg_remember_answer(&request);
	return 0;
}

/* How an inode is checked. `how` is one word of these. */
enum tg_how {
	TG_HOT = 0x7ffff, /* mask: the permissions that the access cache may hold (tg_hot) */
	TG_FROM_ACCESS = 1 << 28, /* access(2): the audit may be suppressed (audit_access) */
	TG_NOT_BLOCK = 1 << 29,	  /* a path walk without locks: see tg_decide_access */
	TG_BY_PATH = 1 << 30,	  /* `where` is a struct path, not a dentry */
	TG_NOT_HOT = 1u << 31, /* among the permissions is one that the access cache cannot hold */
};

/* Whether way 3 has the permissions of all live confined subjects, for this inode or for
 * another with the same row; or whether nothing can be stored there. */
static __always_inline int tg_is_known_for_all(__u64 key)
{
	__u64 any = READ_ONCE(state.any), *row = tg_row(key);

	return !any || (READ_ONCE(row[TG_ANY_WAY]) & 0xffffull << TG_ACCESS_SID) == any;
}

/* Checks permissions on an inode. An unconfined subject is granted everything, and in doing so
 * fills way 3 with what the confined ones have. */
static __always_inline int tg_ask_about(struct tg_request *request, struct inode *inode)
{
	if (request->source || READ_ONCE(state.live[0]))
		tg_name_object(request, inode);
	else
		request->class = tg_mode_class(inode->i_mode);
	request->allowed = ~0u;
	return request->source ? tg_avc_has_perm(request) : 0;
}

/* The second step of a check: the caches have not answered for all subjects. `where` gives the
 * audit the name: a dentry, or NULL, or, with TG_BY_PATH, a struct path. */
static __always_inline int tg_decide_access(struct inode *inode, const void *where, __u64 key,
					    __u32 av, __u32 how)
{
	__u64 subject = tg_task_subject(), overriding = READ_ONCE(state.overriding);
	int result;

	if (subject & TG_UNCONFINED) {
		if (how & TG_NOT_HOT || tg_is_known_for_all(key))
			return 0;
		subject = 0;
	} else if (overriding) {
		subject = tg_find_acting(subject);
	}
	if (subject && !(how & TG_NOT_HOT) && tg_hit_own(key, subject, how & TG_HOT))
		return 0;
	if (inode->i_flags & S_PRIVATE)
		return 0;
	/* During such a walk a file system may give an inode's memory to another inode (XFS).
	 * The answer about the one would be cached for the other. The walk is repeated with
	 * locks. */
	if (how & TG_NOT_BLOCK)
		return -ECHILD;
	/* What a task may do itself, it may do for an unconfined subject, but not for a
	 * confined one. */
	if (subject && !overriding)
		subject = tg_find_acting(subject);
	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.av = av,
		.object = how & TG_BY_PATH ? TG_OBJECT_PATH : TG_OBJECT_INODE,
		.inode = TG_ADDRESS(inode),
		.dentry = where ? TG_ADDRESS(where) : 0,
		.dontaudit = how & TG_FROM_ACCESS ? FILE__AUDIT_ACCESS : 0,
		.epoch = READ_ONCE(state.epoch),
	};

	result = tg_ask_about(&request, inode);
	if (!(how & TG_NOT_HOT))
		tg_remember_answer(&request);
	return tg_verdict_of(result);
}

static __noinline int tg_check_access(struct inode *inode, const void *where, __u64 key, __u32 av,
				      __u32 how)
{
	return tg_decide_access(inode, where, key, av, how);
}

/* The permissions in the form of the access cache; TG_NOT_HOT: it cannot hold all of them. */
static __always_inline __u32 tg_how_hot(__u32 av, int directory)
{
	return tg_is_hot(av, directory) ? tg_hot(av, directory) : TG_NOT_HOT;
}

/* The first step: way 3 answers for all subjects. */
static __always_inline int tg_is_everybodys(__u64 key, __u32 hot)
{
	return !(hot & TG_NOT_HOT) && tg_hit(key, TG_ANY_WAY, READ_ONCE(state.any), hot);
}

static __always_inline int tg_check_at(struct inode *inode, const void *where, __u32 av,
				       int directory, __u32 how)
{
	__u64 key = TG_KEY(inode);
	__u32 hot = tg_how_hot(av, directory);

	if (tg_is_everybodys(key, hot))
		return 0;
	return tg_check_access(inode, where, key, av, hot | how);
}

/*
 * inode_has_perm: checks whether the current task has the permissions `av` on an inode.
 * `directory` must be a constant, because the places of permissions in the cache are computed
 * at compile time. For an inode that may or may not be a directory, no permission may be
 * checked that only directories have.
 */
static __always_inline int tg_check_inode(struct inode *inode, struct dentry *dentry, __u32 av,
					  int directory)
{
	return tg_check_at(inode, dentry, av, directory, 0);
}

/* path_has_perm, file_path_has_perm: likewise, and the audit shows the path. */
static __always_inline int tg_check_path(struct inode *inode, const struct path *path, __u32 av,
					 int directory)
{
	return tg_check_at(inode, path, av, directory, TG_BY_PATH);
}

#endif
