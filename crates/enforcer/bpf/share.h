/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares of limited resources (struct tg_share). Each holder of places in a map is counted,
 * and only a holder whose share is used up is refused. A place records the share to which it
 * is returned.
 */
#ifndef TOLLGATE_SHARE_H
#define TOLLGATE_SHARE_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "state.h"

static __always_inline enum tg_holders tg_holders_of(__u32 share)
{
	if (share >= TG_FIRST_SHARE_OF_USERS)
		return TG_HOLDERS_USERS;
	return share < TG_HOLDERS ? share : TG_HOLDERS_DOMAINS;
}

/* How much of a room all holders of one kind may take. */
static __always_inline __u32 tg_part(enum tg_holders holders, __u32 all)
{
	if (holders == TG_HOLDERS_MACHINE)
		return all;
	return all / 8 *
	       (holders == TG_HOLDERS_USERS ? TG_EIGHTHS_OF_USERS : TG_EIGHTHS_OF_DOMAINS);
}

#define TG_COUNT(count, change) __sync_fetch_and_add(&(count), change)

/* The machine's credentials are not counted: at its forks this would cost more than everything
 * else, and it is never refused any. */
static __always_inline int tg_is_counted(enum tg_room room, __u32 share)
{
	return room != TG_ROOM_CREDENTIALS || share != TG_HOLDERS_MACHINE;
}

/* Takes a place of a room for a share. Returns 0, or -ENOSPC if the share is used up. */
static __always_inline int tg_take_now(enum tg_room room, __u32 share)
{
	if (!tg_is_counted(room, share))
		return 0;
	/* The verifier requires separate comparisons with 0 and with the end. */
	TG_OPAQUE(share);
	enum tg_holders holders = tg_holders_of(share);

	if (room >= TG_ROOMS || share >= TG_SHARES)
		return -ENOSPC;
	__u32 all = READ_ONCE(state.room[room]), own = all;

	if (holders != TG_HOLDERS_MACHINE)
		own = all / 8 * TG_EIGHTHS_OF_ONE;
	if (TG_COUNT(state.shares[share].held[room], 1) < own) {
		if (TG_COUNT(state.held[holders][room], 1) < tg_part(holders, all))
			return 0;
		TG_COUNT(state.held[holders][room], -1);
	}
	TG_COUNT(state.shares[share].held[room], -1);
	tg_failed(TG_FAILED_SHARE + room);
	return -ENOSPC;
}

TG_FUNCTION int tg_take(enum tg_room room, __u32 share)
{
	return tg_take_now(room, share);
}

/* Whether a share has no place left. */
static __always_inline int tg_is_full(enum tg_room room, __u32 share)
{
	enum tg_holders holders = tg_holders_of(share);
	__u32 all = READ_ONCE(state.room[room]), own = all;

	TG_OPAQUE(share);
	if (share >= TG_SHARES)
		return 1;
	if (holders != TG_HOLDERS_MACHINE)
		own = all / 8 * TG_EIGHTHS_OF_ONE;
	return READ_ONCE(state.shares[share].held[room]) >= own ||
	       READ_ONCE(state.held[holders][room]) >= tg_part(holders, all);
}

/* Takes a place that cannot be refused. */
static __always_inline void tg_take_anyway(enum tg_room room, __u32 share)
{
	if (!tg_is_counted(room, share))
		return;
	TG_OPAQUE(share);
	if (share >= TG_SHARES)
		return;
	TG_COUNT(state.shares[share].held[room], 1);
	TG_COUNT(state.held[tg_holders_of(share)][room], 1);
}

/* Returns a place to its share. */
static __always_inline void tg_give(enum tg_room room, __u32 share)
{
	if (!tg_is_counted(room, share))
		return;
	TG_OPAQUE(share);
	if (share >= TG_SHARES)
		return;
	TG_COUNT(state.shares[share].held[room], -1);
	TG_COUNT(state.held[tg_holders_of(share)][room], -1);
}

/* Whether a share has nothing that would have to be returned to it. */
static __always_inline int tg_is_idle(const struct tg_share *share)
{
	return !(READ_ONCE(share->held[TG_ROOM_CREDENTIALS]) |
		 READ_ONCE(share->held[TG_ROOM_LABELS]) | READ_ONCE(share->held[TG_ROOM_OBJECTS]) |
		 READ_ONCE(share->held[TG_ROOM_OWNERS]) | READ_ONCE(share->labels_left) |
		 READ_ONCE(share->owners_lost));
}

/*
 * The user to whom a uid belongs; for a subordinate uid, the user who has it. A setuid program
 * of such a uid runs with it even outside of user namespaces, and files belong to that uid.
 * There are no branches, because the verifier would follow each.
 */
static __always_inline __u32 tg_main_user(__u32 uid)
{
	__u32 from = READ_ONCE(state.subordinates_from);
	__u64 at = 0;

	if (__builtin_expect(!from || uid < from, 1))
		return uid;
	for (__u64 bit = TG_SUBORDINATES / 2; bit; bit >>= 1) {
		__u64 first, place = at | bit;

		TG_OPAQUE(place);
		first = READ_ONCE(state.subordinate[place & (TG_SUBORDINATES - 1)].first);
		at |= ((first - uid - 1) >> 63) * bit;
	}
	TG_OPAQUE(at);
	const struct tg_subordinate *range = &state.subordinate[at & (TG_SUBORDINATES - 1)];
	__u32 last = READ_ONCE(range->last), user = READ_ONCE(range->user);

	/* It is read before clang joins loads of different kinds of pointers into one. */
	TG_OPAQUE(user);
	return uid <= last ? user : uid;
}

/* The place of a holder's share at a `try`. */
static __always_inline __u32 tg_share_at(enum tg_holders holders, __u32 number, __u32 try)
{
	__u32 hash = (number * 0x9e3779b1u >> 16) + try;

	if (holders == TG_HOLDERS_USERS)
		return TG_FIRST_SHARE_OF_USERS + (hash & (TG_SHARES_OF_USERS - 1));
	return TG_FIRST_SHARE_OF_DOMAINS + (hash & (TG_SHARES_OF_DOMAINS - 1));
}

/* The share of a user or a domain; 0: there is none. */
static __always_inline __u32 tg_known_share(enum tg_holders holders, __u32 number)
{
	__u64 holder = TG_HOLDER(holders, number);

	TG_ROLL
	for (__u32 try = 0; try < TG_SHARE_TRIES; try++) {
		__u32 at = tg_share_at(holders, number, try);

		if (READ_ONCE(state.shares[at].holder) == holder)
			return at;
	}
	return 0;
}

/* An idle share, which becomes that of a user or a domain; 0: all are in use, or it was taken
 * meanwhile. What its earlier holder counts between the check and the change is little, and is
 * subtracted where it was added. */
static __always_inline __u32 tg_idle_share(enum tg_holders holders, __u32 number)
{
	TG_ROLL
	for (__u32 try = 0; try < TG_SHARE_TRIES; try++) {
		__u32 at = tg_share_at(holders, number, try);
		__u64 *place = &state.shares[at].holder, there = READ_ONCE(*place);

		if (!there || tg_is_idle(&state.shares[at])) {
			__u64 holder = TG_HOLDER(holders, number);

			return __sync_val_compare_and_swap(place, there, holder) == there ? at : 0;
		}
	}
	return 0;
}

/* The share of a user or a domain. With `make`, one without a share gets an idle one. If none
 * is idle, it is the common share of such holders. */
TG_FUNCTION __u32 tg_share_of(enum tg_holders holders, __u32 number, int make)
{
	__u32 share = tg_known_share(holders, number);

	if (!share && make)
		share = tg_idle_share(holders, number);
	return share ? share : holders;
}

#endif
