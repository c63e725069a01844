/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels of inodes that are known by their address only. bpf_inode_storage_get wants a pointer that
 * the verifier trusts; a table of descriptors is full of others. So this reads inode storage where
 * the kernel keeps it (include/linux/bpf_local_storage.h), after a trusted inode has shown where.
 */
#ifndef TOLLGATE_UNTYPED_H
#define TOLLGATE_UNTYPED_H

#include "ask.h"

#define TG_SECURITY_WORDS 64u /* of an inode's i_security, which modules share */
#define TG_STORAGES 16u	      /* maps whose storage an inode may have */

/* The address of map `inodes` in the kernel, 0: not known yet; and where in i_security the
 * pointer to an inode's storage is. */
static __u64 storage_map;
static __u32 storage_at;

static __always_inline __u64 tg_read_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof word, (void *)address);
	return word;
}

/* Learns where storage lies from an inode whose label is known. */
static __noinline int tg_learn_storage(__u64 inode, __u64 label)
{
	__u64 security = (__u64)TG_MEMBER(inode, struct inode, i_security);
	__u64 data = label - bpf_core_field_offset(struct bpf_local_storage_data, data);

	for (__u32 i = 0; i < TG_SECURITY_WORDS; i++) {
		__u64 storage = tg_read_word(security + i * 8);

		if (!storage || (__u64)TG_MEMBER(storage, struct bpf_local_storage, owner) != inode)
			continue;
		storage_at = i * 8;
		WRITE_ONCE(storage_map,
			   (__u64)TG_MEMBER(data, struct bpf_local_storage_data, smap));
		return 1;
	}
	return 0;
}

/* The label of the inode at an address of the kernel's, which must not go away meanwhile. */
static __noinline int tg_label_at(__u64 inode, struct tg_inode *label)
{
	__u64 map = READ_ONCE(storage_map), node, element;
	__u64 security = (__u64)TG_MEMBER(inode, struct inode, i_security);
	__u64 storage = tg_read_word(security + storage_at);

	if (!map || !storage || !label ||
	    (__u64)TG_MEMBER(storage, struct bpf_local_storage, owner) != inode)
		return 0;
	node = (__u64)TG_MEMBER(storage, struct bpf_local_storage, list.first);
	for (__u32 i = 0; i < TG_STORAGES && node; i++) {
		element = node - bpf_core_field_offset(struct bpf_local_storage_elem, snode);
		if ((__u64)TG_MEMBER(element, struct bpf_local_storage_elem, sdata.smap) == map) {
			element += bpf_core_field_offset(struct bpf_local_storage_elem, sdata) +
				   bpf_core_field_offset(struct bpf_local_storage_data, data);
			return !bpf_probe_read_kernel(label, sizeof *label, (void *)element);
		}
		node = (__u64)TG_MEMBER(node, struct hlist_node, next);
	}
	return 0;
}

#endif
