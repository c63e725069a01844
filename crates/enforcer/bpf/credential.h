/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credentials and the SIDs that they stand for. SELinux keeps a SID in each credential. Here
 * tasks have SIDs, and credentials answer what tasks cannot: who opened a file (f_cred), and
 * for whom a task acts whose credentials are overridden. An unknown credential is the
 * machine's.
 *
 * state.credentials is a direct-mapped array of address 29 | elsewhere 7 | share 12 | SID 16.
 * It is not a cache: a credential whose place is taken goes to a map, and the place counts
 * those.
 */
#ifndef TOLLGATE_CREDENTIAL_H
#define TOLLGATE_CREDENTIAL_H

#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "share.h"
#include "state.h"

#define TG_CREDENTIAL_SHARE 16u /* bit at which it begins in an entry: above the SID */
#define TG_CREDENTIAL_ELSEWHERE 28u
#define TG_CREDENTIAL_TAG 35u /* the rest of the address begins here */
#define TG_CREDENTIAL_SHARE_OF(entry) ((entry) >> TG_CREDENTIAL_SHARE & 0xfff)
#define TG_CREDENTIAL_ONE (1ull << TG_CREDENTIAL_ELSEWHERE)
#define TG_CREDENTIALS_ELSEWHERE (0x7full << TG_CREDENTIAL_ELSEWHERE)
_Static_assert(TG_SHARES <= 0x1000, "a share has 12 bits");

/* The place for an address's key (tg_address_key). */
static __always_inline __u64 *tg_credential_place(__u64 key)
{
	return &state.credentials[key >> 50];
}

/* A free entry has no SID. */
static __always_inline int tg_is_entry_of(__u64 entry, __u64 key)
{
	return (entry & 0xffff) && !((entry ^ key << 14) >> TG_CREDENTIAL_TAG);
}

/* The SID of a credential, by its address (TG_ADDRESS). */
static __always_inline __u32 tg_cred_sid(__u64 address)
{
	__u64 key = tg_address_key(address), found = READ_ONCE(*tg_credential_place(key));
	struct tg_credential *elsewhere;

	if (tg_is_entry_of(found, key))
		return found & 0xffff;
	if (__builtin_expect(!(found & TG_CREDENTIALS_ELSEWHERE), 1))
		return TG_SID_MACHINE;
	elsewhere = bpf_map_lookup_elem(&credentials, &address);
	return elsewhere ? elsewhere->sid : TG_SID_MACHINE;
}

TG_FUNCTION int tg_forget_elsewhere(__u64 address)
{
	struct tg_credential *known = bpf_map_lookup_elem(&credentials, &address);
	__u32 share = known ? known->share : 0;

	if (!known || bpf_map_delete_elem(&credentials, &address))
		return 0;
	__sync_fetch_and_add(tg_credential_place(tg_address_key(address)), -TG_CREDENTIAL_ONE);
	tg_give(TG_ROOM_CREDENTIALS, share);
	return 0;
}

static __always_inline void tg_forget_cred(__u64 address)
{
	__u64 key = tg_address_key(address), *place = tg_credential_place(key);
	__u64 found = READ_ONCE(*place);

	/* Nobody else changes its entry, but the count may change. */
	if (tg_is_entry_of(found, key)) {
		__sync_fetch_and_and(place, TG_CREDENTIALS_ELSEWHERE);
		tg_give(TG_ROOM_CREDENTIALS, TG_CREDENTIAL_SHARE_OF(found));
	} else if (__builtin_expect(!!(found & TG_CREDENTIALS_ELSEWHERE), 0)) {
		tg_forget_elsewhere(address);
	}
}

#endif
