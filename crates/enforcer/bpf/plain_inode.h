/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plain inodes: their label is a SID, who made them, and whether `labels` has them. Most inodes
 * are used for a short time and then go, so they have no storage, whose making and freeing cost
 * more than all checks of a new file. state.plain_inodes is no cache: an inode without a place
 * there gets storage at once, and one whose label changes gets it then (tg_label_of). What
 * storage says comes first.
 *
 * A place is written before the inode can be found, and freed with it (inode_free_security). If
 * that is missed, it is freed when the memory becomes another inode (inode_alloc_security). If
 * that is missed as well, because hooks did not run at all, its identity shows that it is another.
 */
#ifndef TOLLGATE_PLAIN_INODE_H
#define TOLLGATE_PLAIN_INODE_H

#include "address.h"
#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"

/* A label in a word, which is never 0. */
#define TG_PLAIN_LABEL(label)                                                                      \
	((__u64)(label)->flags << 32 | (__u64)(label)->task_sid << 16 | (label)->sid)
#define TG_PLAIN_LABEL_SID(plain) ((__u32)(plain)&0xffff)
#define TG_PLAIN_LABEL_MAKER(plain) ((__u32)(plain) >> 16)
#define TG_PLAIN_LABEL_FLAGS(plain) ((__u32)((plain) >> 32))

/* The places for an inode, by its address (TG_ADDRESS). */
static __always_inline struct tg_plain_inode *tg_plain_inode_places(__u64 inode)
{
	struct tg_plain_inode *places = state.plain_inodes;
	__u64 row = tg_address_key(inode) >> (64 - TG_PLAIN_INODE_ROW_BITS);

	places += row * TG_PLAIN_WAYS;
	TG_OPAQUE(places);
	return places;
}

/* What distinguishes an inode from others that were at its address. */
static __always_inline __u64 tg_identity(__u64 number, __u64 generation, __u64 sb)
{
	return (generation << 32 | (__u32)number) ^ sb << 8;
}

static __always_inline __u64 tg_identity_of(struct inode *inode)
{
	return tg_identity(inode->i_ino, inode->i_generation, TG_ADDRESS(inode->i_sb));
}

/* The label of a plain inode in a word, by its address; 0: it is not plain. */
TG_FUNCTION __u64 tg_find_plain_at(__u64 inode, __u64 identity)
{
	struct tg_plain_inode *places = tg_plain_inode_places(inode);

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++)
		if (READ_ONCE(places[way].inode) == inode &&
		    READ_ONCE(places[way].identity) == identity)
			return READ_ONCE(places[way].label);
	return 0;
}

static __always_inline __u64 tg_find_plain_inode(struct inode *inode)
{
	return tg_find_plain_at(TG_ADDRESS(inode), tg_identity_of(inode));
}

/* Returns 0 if there is no place. */
TG_FUNCTION int tg_put_plain_at(__u64 inode, __u64 identity, __u64 label)
{
	struct tg_plain_inode *places = tg_plain_inode_places(inode);

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++) {
		if (READ_ONCE(places[way].inode) ||
		    __sync_val_compare_and_swap(&places[way].inode, 0, inode))
			continue;
		WRITE_ONCE(places[way].identity, identity);
		WRITE_ONCE(places[way].label, label);
		return 1;
	}
	return 0;
}

/* Two processors may have given one inode two places. */
TG_FUNCTION int tg_forget_plain_inode(__u64 inode)
{
	struct tg_plain_inode *places = tg_plain_inode_places(inode);

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++) {
		if (READ_ONCE(places[way].inode) != inode)
			continue;
		WRITE_ONCE(places[way].label, 0);
		WRITE_ONCE(places[way].inode, 0);
	}
	return 0;
}

/* Moves the label of an inode that has no storage there. NULL: it has no label, or there is no
 * memory, which is counted. */
static __noinline struct tg_inode *tg_settle(struct inode *inode)
{
	__u64 plain = tg_find_plain_inode(inode);
	struct tg_inode *label;

	/* Another processor may have moved it meanwhile. */
	if (!plain)
		return bpf_inode_storage_get(&inodes, inode, 0, 0);
	label = bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!label) {
		tg_failed(TG_FAILED_INODE_STORAGE);
		return 0;
	}
	if (!READ_ONCE(label->sid)) {
		label->task_sid = TG_PLAIN_LABEL_MAKER(plain);
		label->flags |= TG_PLAIN_LABEL_FLAGS(plain);
		__sync_val_compare_and_swap(&label->sid, 0, TG_PLAIN_LABEL_SID(plain));
	}
	tg_forget_plain_inode(TG_ADDRESS(inode));
	return label;
}

/* The label of an inode, in its storage. NULL: it has none. */
static __always_inline struct tg_inode *tg_label_of(struct inode *inode)
{
	struct tg_inode *label = bpf_inode_storage_get(&inodes, inode, 0, 0);

	return label && READ_ONCE(label->sid) ? label : tg_settle(inode);
}

#endif
