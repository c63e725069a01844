/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The caches that answer most questions. All are arrays of 64-bit words at a constant address,
 * which is reached without a helper. An entry contains its complete tag, so one comparison
 * shows a hit.
 *
 *   task_cache   task address 40 | unconfined 1, spare 7 | SID 16
 *   access_cache object's address 29 | SID 16 | permissions 19. A row is an inode, a task
 *                (task_access.h) or a unix socket (socket_access.h); ways 0 to 2 are of subjects,
 *                by SID; way 3 holds what every live confined subject may (state.any).
 *   make_cache   directory's address 29 | SID 16 | spare 2 | names decide 1 | SID that is made 16
 *   avc          tag 26 | generation 6 | permissions 32, by source, target and class
 *
 * Only what is granted and not audited is cached. Everything else is decided anew each time.
 * The entry of a task is written before the task runs (task_alloc), and the row of an inode is
 * cleared when its memory becomes another inode (inode_alloc_security), so an address is never
 * mistaken for its predecessor.
 */
#ifndef TOLLGATE_CACHE_H
#define TOLLGATE_CACHE_H

#include "address.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "libbpf.h"
#include "state.h"

#define TG_ANY_WAY 3
#define TG_UNCONFINED 0x10000u /* in a task's entry, above the SID */

/* A bijection on the 43 bits in which addresses differ: 14 bits choose the row, 29 are the tag. */
static __always_inline __u64 tg_address_key(__u64 address)
{
	__u64 key = address << 18;

	TG_OPAQUE(key);
	key *= 0x61c88647;
	TG_OPAQUE(key);
	return key;
}

#define TG_KEY(object) tg_address_key(TG_ADDRESS(object))

/* The row of an inode, as an offset from the beginning of the state, so that one load reaches a
 * way. */
static __always_inline __u64 *tg_row(__u64 key)
{
	__u64 *row = (__u64 *)&state, offset = key >> 50;

	row += offset * TG_ACCESS_WAYS;
	TG_OPAQUE(row);
	return row + offsetof(struct tg_state, access_cache) / sizeof *row;
}

/* The part of an entry beside the permissions. The permissions are its low bits, so that a mask
 * of both fits into an instruction. */
#define TG_ACCESS_TAG (~0ull << TG_ACCESS_SID)

/* Whether `way` of the row says that a subject has the permissions `hot`, of which there is at
 * least one. `subject` is the SID at the place where an entry has it. */
static __always_inline int tg_hit(__u64 key, __u32 way, __u64 subject, __u64 hot)
{
	__u64 *row = tg_row(key);

	return ((READ_ONCE(row[way]) ^ (key << 14 | subject)) & (TG_ACCESS_TAG | hot)) == hot;
}

/* The way of a subject: 0 to 2. The daemon and the programs give subjects no SID that is 3
 * modulo 4. */
static __always_inline __u32 tg_way(__u64 sid)
{
	return sid & 3;
}

/* Whether the subject's own way says that it has these permissions. */
static __always_inline int tg_hit_own(__u64 key, __u64 sid, __u64 hot)
{
	return tg_hit(key, tg_way(sid), sid << TG_ACCESS_SID, hot);
}

static __always_inline void tg_remember_access(__u64 key, __u32 way, __u64 subject, __u64 hot,
					       __u32 epoch)
{
	__u64 *entry = tg_row(key) + way;

	__sync_lock_test_and_set(entry, key << 14 | subject | hot);
	if ((__u32)READ_ONCE(state.epoch) != epoch)
		WRITE_ONCE(*entry, 0);
}

/* Adds to what an entry says of the same subject and object. */
static __always_inline void tg_add_access(__u64 key, __u32 way, __u64 subject, __u64 hot,
					  __u32 epoch)
{
	__u64 found = READ_ONCE(tg_row(key)[way]) ^ (key << 14 | subject);

	if (!(found & TG_ACCESS_TAG))
		hot |= found;
	tg_remember_access(key, way, subject, hot, epoch);
}

static __always_inline void tg_forget_row(__u64 key)
{
	__u64 *row = tg_row(key);

	WRITE_ONCE(row[0], 0);
	WRITE_ONCE(row[1], 0);
	WRITE_ONCE(row[2], 0);
	WRITE_ONCE(row[3], 0);
}

/* An entry of make_cache: a name may have a rule of its own. */
#define TG_MADE_BY_NAME 0x10000u
#define TG_MADE_TAG (~0ull << TG_ACCESS_SID)

static __always_inline __u64 *tg_made_entry(__u64 key, int directory)
{
	__u64 *entry = state.make_cache, offset = key >> 50;

	entry += offset * 2 + directory;
	TG_OPAQUE(entry);
	return entry;
}

/* The SID of a file, or a directory, that a subject makes in the directory with this key, with
 * TG_MADE_BY_NAME. It was granted this, and it is not audited. 0: not known. */
static __always_inline __u32 tg_find_made(__u64 key, __u64 subject, int directory)
{
	__u64 found = READ_ONCE(*tg_made_entry(key, directory));

	found ^= key << 14 | subject << TG_ACCESS_SID;
	return found & TG_MADE_TAG || READ_ONCE(state.switching) ? 0 : found;
}

static __always_inline void tg_remember_made(__u64 key, __u64 subject, int directory, __u32 made,
					     __u32 epoch)
{
	__u64 *entry = tg_made_entry(key, directory);

	__sync_lock_test_and_set(entry, key << 14 | subject << TG_ACCESS_SID | made);
	if ((__u32)READ_ONCE(state.epoch) != epoch)
		WRITE_ONCE(*entry, 0);
}

static __always_inline void tg_forget_made(__u64 key)
{
	WRITE_ONCE(*tg_made_entry(key, 0), 0);
	WRITE_ONCE(*tg_made_entry(key, 1), 0);
}

static __always_inline void tg_forget_access(__u64 key)
{
	tg_forget_row(key);
	tg_forget_made(key);
}

/*
 * The 19 permissions of an inode that the access cache can hold. Files and directories have
 * the same ones in bits 0 to 18. Those of them that are never or rarely checked on an existing
 * object leave their place to permissions that are checked often. A permission that the cache
 * cannot hold is TG_NOT_HOT (object.h).
 */
#define TG_HOT_PLACE_A 3  /* create: a file's execute_no_trans */
#define TG_HOT_PLACE_B 7  /* relabelfrom: add_name */
#define TG_HOT_PLACE_C 8  /* relabelto: remove_name */
#define TG_HOT_PLACE_D 15 /* quotaon: rmdir */
#define TG_HOT_SAME (0x7ffffu & ~(1u << 3 | 1u << 7 | 1u << 8 | 1u << 15))
/* The permission for MAY_EXEC on any object: a directory's search has the same bit as a file's
 * execute. */
#define TG_HOT_EXECUTE FILE__EXECUTE

/* Each permission up to watch_reads has the same bit in all classes of files. */
_Static_assert(FILE__READ == DIR__READ && FILE__OPEN == DIR__OPEN, "classes.txt");
_Static_assert(FILE__WATCH_READS == DIR__WATCH_READS && FILE__OPEN == LNK_FILE__OPEN &&
		       FILE__OPEN == CHR_FILE__OPEN && FILE__OPEN == BLK_FILE__OPEN &&
		       FILE__OPEN == SOCK_FILE__OPEN && FILE__OPEN == FIFO_FILE__OPEN &&
		       FILE__OPEN == ANON_INODE__OPEN && FILE__OPEN == MEMFD_FILE__OPEN,
	       "classes.txt");

#define TG_MOVED(av, from, place) (((av) & (from)) / (from) << (place))

static __always_inline __u32 tg_hot(__u32 av, int directory)
{
	if (directory)
		return (av & TG_HOT_SAME & ~TG_HOT_EXECUTE) |
		       (av & DIR__SEARCH ? TG_HOT_EXECUTE : 0) |
		       TG_MOVED(av, DIR__ADD_NAME, TG_HOT_PLACE_B) |
		       TG_MOVED(av, DIR__REMOVE_NAME, TG_HOT_PLACE_C) |
		       TG_MOVED(av, DIR__RMDIR, TG_HOT_PLACE_D);
	return (av & TG_HOT_SAME) | TG_MOVED(av, FILE__EXECUTE_NO_TRANS, TG_HOT_PLACE_A);
}

/* Whether the access cache can hold all permissions of `av`. */
static __always_inline int tg_is_hot(__u32 av, int directory)
{
	__u32 places = directory ? (TG_HOT_SAME & ~DIR__EXECUTE) | DIR__SEARCH | DIR__ADD_NAME |
					   DIR__REMOVE_NAME | DIR__RMDIR
				 : TG_HOT_SAME | FILE__EXECUTE_NO_TRANS;

	return !(av & ~places);
}

/* The access vector cache: a bijection on 39 bits, of which 13 choose the entry and 26 are the
 * tag. */
#define TG_AVC_KEY(source, target, class)                                                          \
	(((__u64)(target) << 23 | (__u64)(source) << 7 | (class)) * 0x9e3779b97f4a7c15ull)

static __always_inline __u64 *tg_avc_entry(__u64 key)
{
	__u64 *entry = state.avc, index = key >> 26 & (TG_AVC_ENTRIES - 1);

	entry += index;
	TG_OPAQUE(entry);
	return entry;
}

static __always_inline __u64 tg_avc_tag(__u64 key, __u64 epoch)
{
	return (key & ((1u << 26) - 1)) << 38 | (epoch & 63) << 32;
}

#endif
