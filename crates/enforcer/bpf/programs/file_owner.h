/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals that a file sends to its owner (fcntl F_SETOWN). They come from the task that set the
 * owner. */
#ifndef TOLLGATE_PROGRAMS_FILE_OWNER_H
#define TOLLGATE_PROGRAMS_FILE_OWNER_H

#include "../address.h"
#include "../compiler.h"
#include "../credential.h"
#include "../holder.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../process.h"
#include "../read.h"
#include "../share.h"
#include "../state.h"
#include "../subject.h"
#include "../survival.h"
#include "classes.h"
#include "enforcer.h"

/* The task that set the owner, with a random part that differs each time, so that the sweep
 * never removes an entry other than the one that it has examined. */
#define TG_OWNER(sid, share) ((__u64)bpf_get_prandom_u32() << 32 | (share) << 16 | (sid))
#define TG_OWNER_SHARE(word) ((word) >> 16 & 0xffff)
#define TG_OWNER_GONE (~0ull) /* the sweep, which alone removes entries, is removing it */

struct tg_count {
	long counter;
};
struct file___counted {
	struct tg_count f_count; /* atomic_long_t */
} __attribute__((preserve_access_index));
struct file___referenced {     /* since 6.13 */
	struct tg_count f_ref; /* file_ref_t */
} __attribute__((preserve_access_index));

/* Whether a file, by its address, is closed: it is about to be freed, or was freed. If
 * something else is at the address by now, the entry just stays for a while. */
static __always_inline int tg_is_file_gone(__u64 file)
{
	__u64 count = 0;

	if (bpf_core_field_exists(struct file___counted, f_count))
		return !TG_READ(count,
				file + bpf_core_field_offset(struct file___counted, f_count)) &&
		       !count;
	/* FILE_REF_RELEASED and above. FILE_REF_NOREF may become a file again. */
	return !TG_READ(count, file + bpf_core_field_offset(struct file___referenced, f_ref)) &&
	       count >= 0xc000000000000000ull && count != ~0ull;
}

/* Replaces a word by another. Returns 0 if it has changed meanwhile, or is about to be removed. */
static __always_inline int tg_replace_owner(struct tg_owner *known, __u64 word)
{
	__u64 there = READ_ONCE(known->word);

	if (there == TG_OWNER_GONE ||
	    __sync_val_compare_and_swap(&known->word, there, word) != there)
		return 0;
	if (there)
		tg_give(TG_ROOM_OWNERS, TG_OWNER_SHARE(there));
	return 1;
}

/* Enters an owner. The sweep may be removing what was left at the address. Returns 0 or
 * -ENOSPC. */
static __always_inline int tg_put_owner(__u64 key, __u64 word)
{
	struct tg_owner owner = {word}, *known;

	for (int try = 0; try < 3; try++) {
		known = bpf_map_lookup_elem(&owners, &key);
		if (known ? tg_replace_owner(known, word) : !word)
			return 0;
		if (!known && !bpf_map_update_elem(&owners, &key, &owner, BPF_NOEXIST))
			return 0;
	}
	return word ? -ENOSPC : 0;
}

/* If the share has the place already, it takes no other. */
static __always_inline int tg_is_owner_kept(__u64 key, __u32 sid, __u32 share)
{
	struct tg_owner *known = bpf_map_lookup_elem(&owners, &key);
	__u64 there = known ? READ_ONCE(known->word) : 0;

	return known && there && there != TG_OWNER_GONE && TG_OWNER_SHARE(there) == share &&
	       __sync_val_compare_and_swap(&known->word, there, TG_OWNER(sid, share)) == there;
}

/* Records that for some file of the current user, or of some domain of root, it is not known
 * who set the owner. The file's own uid says which user it is. */
static __noinline void tg_lose_owner(__u32 opener)
{
	__u32 user = tg_main_user(bpf_get_current_task_btf()->cred->uid.val);
	__u32 share = user ? tg_share_of(TG_HOLDERS_USERS, user, 1) : TG_HOLDERS_DOMAINS;

	if (share < TG_SHARES)
		__sync_fetch_and_or(&state.shares[share].owners_lost,
				    opener == TG_SID_MACHINE ? TG_OWNERS_LOST_OF_MACHINE
							     : TG_OWNERS_LOST);
	WRITE_ONCE(state.owners_lost, 1);
}

/* Returns 0 or -ENOSPC. For a file that the machine has opened, it must be known whose share it
 * may be. */
static __always_inline int tg_enter_owner(__u64 key, __u32 sid, __u32 opener)
{
	__u32 share = tg_own_share();

	if (tg_is_owner_kept(key, sid, share))
		return 0;
	if (opener == TG_SID_MACHINE)
		tg_take_anyway(TG_ROOM_OWNERS, share);
	else if (tg_take(TG_ROOM_OWNERS, share))
		return -ENOSPC;
	if (!tg_put_owner(key, TG_OWNER(sid, share)))
		return 0;
	tg_give(TG_ROOM_OWNERS, share);
	tg_failed(TG_FAILED_OWNERS_FULL);
	return -ENOSPC;
}

/* selinux_file_set_fowner. It cannot fail. If an owner finds no place, it counts as unlabelled
 * from then on, and so do all unknown owners of files whose owner the same user has set. */
SEC("lsm/file_set_fowner") int BPF_PROG(file_set_fowner, struct file *file)
{
	__u64 key = TG_ADDRESS(file);
	__u32 sid = tg_subject_by_call() & 0xffff, opener = tg_cred_sid(TG_ADDRESS(file->f_cred));

	if (sid != opener && !tg_enter_owner(key, sid, opener))
		return 0;
	if (sid != opener)
		tg_lose_owner(opener);
	tg_put_owner(key, 0);
	return 0;
}

static __always_inline __u64 tg_owned_file(struct fown_struct *owner)
{
	if (bpf_core_field_exists(struct fown_struct, file))
		return TG_ADDRESS(owner->file);
	return TG_ADDRESS(owner) - bpf_core_field_offset(struct file___with_owner, f_owner);
}

/* Whether an unknown owner may have been set by another task than the one that opened the file. */
static __noinline int tg_is_owner_lost(__u32 uid, __u32 opener)
{
	__u32 which = opener == TG_SID_MACHINE ? TG_OWNERS_LOST_OF_MACHINE : TG_OWNERS_LOST;
	__u32 user = tg_main_user(uid);
	__u32 share = user ? tg_share_of(TG_HOLDERS_USERS, user, 0) : TG_HOLDERS_DOMAINS;

	/* A user with a share may have had none then. */
	if (user && state.shares[TG_HOLDERS_USERS].owners_lost & which)
		return 1;
	return share < TG_SHARES && state.shares[share].owners_lost & which;
}

/* The task that set the owner of a file, with the uid in the file. An entry that the sweep may
 * have removed, because the file is closed, is unlabelled. */
static __always_inline __u32 tg_owner_sid(__u64 key, __u32 uid)
{
	struct tg_owner *known = bpf_map_lookup_elem(&owners, &key);
	__u64 word = known ? READ_ONCE(known->word) : 0, anchor;

	if (word && word != TG_OWNER_GONE)
		return word & 0xffff;
	anchor = tg_state_address();
	if (tg_is_file_gone(key + anchor))
		return SECINITSID_UNLABELED;
	__u32 opener = tg_cred_sid((__u64)TG_MEMBER(key + anchor, struct file, f_cred) - anchor);

	return READ_ONCE(state.owners_lost) && tg_is_owner_lost(uid, opener) ? SECINITSID_UNLABELED
									     : opener;
}

/* selinux_file_send_sigiotask */
SEC("lsm/file_send_sigiotask")
int BPF_PROG(file_send_sigiotask, struct task_struct *task, struct fown_struct *owner, int signal)
{
	__u32 sid = tg_owner_sid(tg_owned_file(owner), owner->uid.val);

	if (tg_is_unconfined(sid))
		return 0;
	if (tg_ask_daemon(task, sid))
		return -EACCES;
	return tg_ask_process(sid, tg_sid_of(task), SECCLASS_PROCESS,
			      tg_signal_av(signal ? signal : SIGIO));
}

struct tg_sweep {
	__u64 anchor;
	__u32 removed;
};

static long tg_sweep_owner(void *map, const __u64 *key, struct tg_owner *owner,
			   struct tg_sweep *sweep)
{
	__u64 word = READ_ONCE(owner->word);

	if (!tg_is_file_gone(*key + sweep->anchor) ||
	    __sync_val_compare_and_swap(&owner->word, word, TG_OWNER_GONE) != word)
		return 0;
	if (word && word != TG_OWNER_GONE)
		tg_give(TG_ROOM_OWNERS, TG_OWNER_SHARE(word));
	if (!bpf_map_delete_elem(map, key))
		sweep->removed++;
	return 0;
}

/* Removes the entries of closed files. The daemon runs it, one at a time. */
SEC("syscall") int sweep(struct tg_inquiry *inquiry)
{
	struct tg_sweep sweep = {.anchor = tg_state_address()};

	bpf_for_each_map_elem(&owners, tg_sweep_owner, &sweep, 0);
	inquiry->result = sweep.removed;
	return 0;
}

#endif
