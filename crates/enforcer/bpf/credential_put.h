/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Credentials get SIDs, each in the share of its maker. */
#ifndef TOLLGATE_CREDENTIAL_PUT_H
#define TOLLGATE_CREDENTIAL_PUT_H

#include "cache.h"
#include "compiler.h"
#include "credential.h"
#include "decide.h"
#include "enforcer.h"
#include "holder.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "share.h"
#include "state.h"
#include "subject.h"

/* More than any place has in the map: the largest map has 1,048,576 entries for 16,384 places,
 * which is 64 each. */
#define TG_MANY_ELSEWHERE (120ull << TG_CREDENTIAL_ELSEWHERE)

/* Gives a credential that has a place another SID. */
static __always_inline int tg_change_cred(__u64 key, __u64 address, __u32 sid)
{
	__u64 *place = tg_credential_place(key), found = READ_ONCE(*place);
	struct tg_credential *elsewhere;

	if (tg_is_entry_of(found, key)) {
		__sync_fetch_and_xor(place, (found ^ sid) & 0xffff);
		return 1;
	}
	if (!(found & TG_CREDENTIALS_ELSEWHERE))
		return 0;
	elsewhere = bpf_map_lookup_elem(&credentials, &address);
	if (!elsewhere)
		return 0;
	WRITE_ONCE(elsewhere->sid, sid);
	return 1;
}

/* Enters a credential that has no place. Returns 0 or -ENOMEM. */
static __always_inline int tg_enter_cred(__u64 key, __u64 address, __u32 sid, __u32 share)
{
	__u64 entry = key << 14 | (__u64)share << TG_CREDENTIAL_SHARE | sid;
	__u64 *place = tg_credential_place(key), found = READ_ONCE(*place);
	struct tg_credential elsewhere = {sid, share};

	if (!(found & ~TG_CREDENTIALS_ELSEWHERE) &&
	    __sync_val_compare_and_swap(place, found, found | entry) == found)
		return 0;
	/* A full count would overflow into the address. */
	if ((found & TG_CREDENTIALS_ELSEWHERE) >= TG_MANY_ELSEWHERE)
		goto failed;
	__sync_fetch_and_add(place, TG_CREDENTIAL_ONE);
	if (!bpf_map_update_elem(&credentials, &address, &elsewhere, BPF_NOEXIST))
		return 0;
	__sync_fetch_and_add(place, -TG_CREDENTIAL_ONE);
failed:
	tg_failed(TG_FAILED_CREDENTIALS);
	return -ENOMEM;
}

/* Records the SID of a credential; `anyway`: even above the share. Returns 0 or -ENOMEM. */
TG_FUNCTION int tg_remember_cred(__u64 address, __u32 sid, int anyway)
{
	__u64 key = tg_address_key(address);
	__u32 share;

	if (sid == TG_SID_MACHINE) {
		tg_forget_cred(address);
		return 0;
	}
	if (tg_change_cred(key, address, sid))
		return 0;
	share = tg_own_share();
	if (anyway)
		tg_take_anyway(TG_ROOM_CREDENTIALS, share);
	else if (tg_take(TG_ROOM_CREDENTIALS, share))
		return -ENOMEM;
	if (!tg_enter_cred(key, address, sid, share))
		return 0;
	tg_give(TG_ROOM_CREDENTIALS, share);
	return -ENOMEM;
}

/* Records the share of a credential in the array. Returns the share that it was in before. */
static __always_inline __u32 tg_write_share(__u64 *place, __u32 was, __u32 to)
{
	__u64 found = __sync_fetch_and_xor(place, (__u64)(was ^ to) << TG_CREDENTIAL_SHARE);
	__u32 now = TG_CREDENTIAL_SHARE_OF(found);

	/* relabel_slipped, or setcon, has changed the entry meanwhile. */
	if (__builtin_expect(now != was, 0))
		__sync_fetch_and_xor(place, (__u64)(now ^ was) << TG_CREDENTIAL_SHARE);
	return now;
}

/*
 * A credential gets another user or another subject, and changes to the share of that one. Its
 * copies are in the same share, so this is done wherever either changes, and not at each fork.
 * Returns 0, or -ENOMEM if that share is used up, which `anyway` disregards.
 */
TG_FUNCTION int tg_move_cred(__u64 address, __u32 user, int anyway)
{
	__u64 key = tg_address_key(address), *place = tg_credential_place(key);
	__u64 found = READ_ONCE(*place), subject = tg_cred_sid(address);
	struct tg_credential *elsewhere = 0;
	__u32 was = TG_CREDENTIAL_SHARE_OF(found), to;

	if (subject == TG_SID_MACHINE)
		return 0;
	if (tg_is_unconfined(subject))
		subject |= TG_UNCONFINED;
	to = tg_share_for(user, subject);
	if (!tg_is_entry_of(found, key)) {
		elsewhere = bpf_map_lookup_elem(&credentials, &address);
		if (!elsewhere)
			return 0;
		was = elsewhere->share;
	}
	if (was == to)
		return 0;
	if (anyway)
		tg_take_anyway(TG_ROOM_CREDENTIALS, to);
	else if (tg_take(TG_ROOM_CREDENTIALS, to))
		return -ENOMEM;
	if (elsewhere)
		was = __sync_lock_test_and_set(&elsewhere->share, to);
	else
		was = tg_write_share(place, was, to);
	tg_give(TG_ROOM_CREDENTIALS, was);
	return 0;
}

/*
 * A credential of the current task, or of its future, gets another subject, and changes to
 * that subject's share. Returns 0, or -ENOMEM: then it keeps its subject. A process that the
 * machine starts or admits finds a place anyway.
 */
TG_FUNCTION int tg_turn_cred(__u64 address, __u32 sid)
{
	__u32 was = tg_cred_sid(address), user = tg_user_of(bpf_get_current_task_btf()->real_cred);
	int anyway = tg_task_subject() & TG_UNCONFINED ? 1 : 0;

	if (tg_remember_cred(address, sid, anyway))
		return -ENOMEM;
	if (!tg_move_cred(address, user, anyway))
		return 0;
	tg_remember_cred(address, was, 1);
	return -ENOMEM;
}

#endif
