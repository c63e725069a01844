/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credentials and the SIDs they stand for. SELinux keeps a SID in each; here tasks have SIDs, and
 * this knows of credentials what tasks cannot tell: who opened a file (f_cred), on whose behalf a
 * task acts whose credentials are overridden. A credential that is not known is the machine's.
 *
 * state.credentials is a direct-mapped array of address 40 | SID 16. It is no cache: what finds its
 * place taken goes to a map.
 */
#ifndef TOLLGATE_CREDENTIAL_H
#define TOLLGATE_CREDENTIAL_H

#include "cache.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, __u64);
	__type(value, __u32);
} credentials SEC(".maps");

static __always_inline __u64 *tg_credential_place(__u64 address)
{
	/* 14 bits of the product */
	return &state.credentials[((__u32)(address >> 6) * 0x9e3779b1u) >> 18];
}

/* The SID of a credential, by its address (TG_ADDRESS). */
static __always_inline __u32 tg_cred_sid(__u64 address)
{
	__u64 found = READ_ONCE(*tg_credential_place(address)) ^ address << 18;
	__u32 *sid;

	if (!(found >> 24))
		return found & 0xffff;
	if (!READ_ONCE(state.credentials_elsewhere))
		return TG_SID_MACHINE;
	sid = bpf_map_lookup_elem(&credentials, &address);
	return sid ? *sid : TG_SID_MACHINE;
}

static __always_inline void tg_forget_cred(__u64 address)
{
	__u64 *place = tg_credential_place(address), found = READ_ONCE(*place);

	if (!((found ^ address << 18) >> 24))
		__sync_val_compare_and_swap(place, found, 0);
	if (READ_ONCE(state.credentials_elsewhere) && !bpf_map_delete_elem(&credentials, &address))
		__sync_fetch_and_add(&state.credentials_elsewhere, -1);
}

/* Remembers the SID of a credential. 0 or -ENOMEM. */
static __always_inline int tg_remember_cred(__u64 address, __u32 sid)
{
	__u64 *place = tg_credential_place(address), found = READ_ONCE(*place);
	__u64 entry = address << 18 | sid;

	if (sid == TG_SID_MACHINE) {
		tg_forget_cred(address);
		return 0;
	}
	if (!found || !((found ^ entry) >> 24))
		if (__sync_val_compare_and_swap(place, found, entry) == found)
			return 0;
	if (!bpf_map_update_elem(&credentials, &address, &sid, BPF_NOEXIST)) {
		__sync_fetch_and_add(&state.credentials_elsewhere, 1);
		return 0;
	}
	if (!bpf_map_update_elem(&credentials, &address, &sid, BPF_EXIST))
		return 0;
	tg_failed(TG_FAILED_CREDENTIALS);
	return -ENOMEM;
}

/*
 * selinux_cred_prepare, selinux_cred_transfer: a copy stands for what the original does. So does
 * that of one of the machine's: security_cred_free calls nobody where no module keeps something in
 * credentials (lsm=bpf alone), so what was at its address before may still be known.
 */
static __always_inline int tg_copy_cred(struct cred *new, const struct cred *old)
{
	return tg_remember_cred(TG_ADDRESS(new), tg_cred_sid(TG_ADDRESS(old))) ? -ENOMEM : 0;
}

SEC("lsm/cred_prepare") int BPF_PROG(cred_prepare, struct cred *new, const struct cred *old)
{
	return tg_copy_cred(new, old);
}

SEC("lsm/cred_transfer") int BPF_PROG(cred_transfer, struct cred *new, const struct cred *old)
{
	tg_copy_cred(new, old);
	return 0;
}

SEC("lsm/cred_free") int BPF_PROG(cred_free, struct cred *cred)
{
	tg_forget_cred(TG_ADDRESS(cred));
	return 0;
}

#endif
