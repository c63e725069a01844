/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is asked about: the label of an inode, and the check of an access to it. */
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
#include "request.h"
#include "socket_label.h"
#include "state.h"
#include "subject.h"

/* inode_mode_to_security_class: four bits for each type of inode, the class's distance from file.
 * Without branches: the verifier would follow each of seven ways through all that comes after. */
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

/* The SID of an inode without a label, such as one that was in memory before the programs were:
 * that of its file system's, where all have the same, or of what it stands for. */
static __noinline __u32 tg_unseen_sid(struct inode *inode)
{
	struct tg_superblock *superblock = tg_superblock_of(inode->i_sb);
	__u32 sid = tg_is_overlay(inode->i_sb) ? tg_real_sid(TG_KERNEL_ADDRESS(inode)) : 0;

	if (sid)
		return sid;
	if (superblock && superblock->behaviour == TG_FS_GENFS && !superblock->node)
		return superblock->sid;
	/* It fails nobody who is asked nothing. */
	if (READ_ONCE(state.labelling_complete) && !(tg_task_subject() & TG_UNCONFINED))
		tg_met_unlabelled(inode->i_ino, inode->i_sb->s_dev);
	return SECINITSID_UNLABELED;
}

/* The label of an inode. One without is as unlabelled as SELinux's (SECINITSID_UNLABELED). */
static __always_inline struct tg_object tg_object_of(struct inode *inode)
{
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);
	struct tg_object object = {SECINITSID_UNLABELED, 0};

	if (label && (label->sid || tg_is_accepted(TG_KERNEL_ADDRESS(inode), label))) {
		object.sid = label->sid;
		object.class = label->class;
	} else {
		object.sid = tg_unseen_sid(inode);
	}
	if (!object.class)
		object.class = tg_mode_class(inode->i_mode);
	if (object.class == SECCLASS_SOCK_FILE)
		object.class = tg_socket_class(TG_KERNEL_ADDRESS(inode));
	return object;
}

static __always_inline void tg_name_object(struct tg_request *request, struct inode *inode)
{
	struct tg_object object = tg_object_of(inode);

	request->target = object.sid;
	request->class = object.class;
	request->manager = object.class == SECCLASS_DIR ? TG_MANAGER_DIRECTORY : TG_MANAGER_FILE;
}

/* What of `allowed` every live confined subject may do with an object, beside `own`, who asks. */
static __always_inline __u32 tg_any_allowed(struct tg_request *request, __u32 own, __u32 allowed)
{
	request->quiet = 1;
	for (__u32 i = 0; i < TG_LIVE; i++) {
		/* The lower half: without TG_LIVE_COMING. */
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

/* Remembers what was answered about an inode in the access cache. All comes from the request, for
 * the stack is small. */
static __always_inline void tg_remember_answer(struct tg_request *request)
{
	__u64 key = tg_address_key(request->inode), any;
	int directory = request->class == SECCLASS_DIR;
	__u32 own = request->source, allowed = request->allowed;

	__u64 above = (__u64)own - TG_SID_CANARY, below = TG_SID_CANARY - (__u64)own;

	/* Without a branch of its own, for the verifier would follow it in each program. */
	TG_OPAQUE(above);
	/* Counted is what comes to tg_ask: then all is to. The canary may nothing, which says
	 * nothing of others. */
	if (READ_ONCE(state.statistics) | !((above | below) >> 63))
		return;
	if (own)
		tg_remember_access(key, tg_way(own), (__u64)own << TG_ACCESS_SID,
				   tg_hot(allowed, directory), request->epoch);
	/* Before `live`: who becomes live from now on makes it another. */
	any = READ_ONCE(state.any);
	if (any)
		tg_remember_access(key, TG_ANY_WAY, any,
				   tg_hot(tg_any_allowed(request, own, allowed), directory),
				   request->epoch);
}

/* How an inode is checked. `how` has one word of these. */
enum tg_how {
	TG_HOT = 0x7ffff, /* mask: the permissions that the access cache may hold (tg_hot) */
	TG_FROM_ACCESS = 1 << 28, /* access(2): audit_access may be told not to be audited */
	TG_NOT_BLOCK = 1 << 29,	  /* a path walk that holds nothing: see tg_decide_access */
	TG_BY_PATH = 1 << 30,	  /* `where` is a struct path, not a dentry */
	TG_NOT_HOT = 1u << 31, /* among the permissions is one that the access cache cannot hold */
};

/* Whether way 3 holds what every live confined subject may, of this inode or of another that keeps
 * its place: or nothing can be told. */
static __always_inline int tg_is_told(__u64 key)
{
	__u64 any = READ_ONCE(state.any), *row = tg_row(key);

	return !any || (READ_ONCE(row[TG_ANY_WAY]) & 0xffffull << TG_ACCESS_SID) == any;
}

/* Who asks about an inode, and what is asked: an unconfined subject is granted everything, and so
 * way 3 learns what the confined ones may. */
static __always_inline int tg_ask_about(struct tg_request *request, struct inode *inode)
{
	if (request->source || READ_ONCE(state.live[0]))
		tg_name_object(request, inode);
	else
		request->class = tg_mode_class(inode->i_mode);
	request->allowed = ~0u;
	return request->source ? tg_avc_has_perm(request) : 0;
}

/* The second step of a check: the caches have not answered for everybody. `where` is what the
 * audit tells the name by: a dentry, or none, or, with TG_BY_PATH, a struct path. */
static __always_inline int tg_decide_access(struct inode *inode, const void *where, __u64 key,
					    __u32 av, __u32 how)
{
	__u64 subject = tg_task_subject(), overriding = READ_ONCE(state.overriding);
	int result;

	if (subject & TG_UNCONFINED) {
		if (how & TG_NOT_HOT || tg_is_told(key))
			return 0;
		subject = 0;
	} else if (overriding) {
		subject = tg_acting_subject(subject);
	}
	if (subject && !(how & TG_NOT_HOT) && tg_hit_own(key, subject, how & TG_HOT))
		return 0;
	if (inode->i_flags & S_PRIVATE)
		return 0;
	/* A file system may give an inode's memory to another during such a walk (XFS), and what
	 * was found out of the one would be remembered of the other. The walk comes again. */
	if (how & TG_NOT_BLOCK)
		return -ECHILD;
	/* What a task may do itself it may do for who is unconfined; not for who is confined. */
	if (subject && !overriding)
		subject = tg_acting_subject(subject);
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

/* What the access cache holds of permissions; TG_NOT_HOT: it holds not all. */
static __always_inline __u32 tg_how_hot(__u32 av, int directory)
{
	return tg_is_hot(av, directory) ? tg_hot(av, directory) : TG_NOT_HOT;
}

/* The first step: way 3 answers for everybody. */
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
 * inode_has_perm: whether the current task has the permissions `av` on an inode. `directory` must
 * be a constant, for the places of permissions in the cache are found when this is compiled: where
 * an inode may be one or not, no permissions are asked that only directories have.
 */
static __always_inline int tg_check_inode(struct inode *inode, struct dentry *dentry, __u32 av,
					  int directory)
{
	return tg_check_at(inode, dentry, av, directory, 0);
}

/* path_has_perm, file_path_has_perm: likewise; the audit tells the path. */
static __always_inline int tg_check_path(struct inode *inode, const struct path *path, __u32 av,
					 int directory)
{
	return tg_check_at(inode, path, av, directory, TG_BY_PATH);
}

#endif
