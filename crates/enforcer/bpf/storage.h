/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels of inodes and sockets that are known only by their address. bpf_inode_storage_get
 * needs a pointer that the verifier trusts, but tables of descriptors and overlayfs contain
 * others. So this reads inode storage in the layout of the kernel
 * (include/linux/bpf_local_storage.h). Everything that is read is checked by the pointers that
 * lead back. Without those there is no label.
 */
#ifndef TOLLGATE_STORAGE_H
#define TOLLGATE_STORAGE_H

#include "address.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "plain_inode.h"
#include "plain_socket.h"
#include "state.h"

/* The offset of the BPF LSM's part in an inode's security blob. */
extern const void bpf_lsm_blob_sizes __ksym __weak;

#define TG_STORAGES 16 /* the most storage maps that an object may be in, including ours */

/* The storage of an inode; NULL: it has none. */
static __always_inline struct bpf_local_storage *tg_storage_of(__u64 address)
{
	struct inode *inode = (void *)address;
	__u64 sizes = (__u64)&bpf_lsm_blob_sizes;
	struct bpf_local_storage *storage = 0;
	int at = 0;

	if (!sizes)
		return 0;
	at = BPF_CORE_READ((struct lsm_blob_sizes *)sizes, lbs_inode);
	bpf_probe_read_kernel(&storage, sizeof storage, BPF_CORE_READ(inode, i_security) + at);
	return storage && (__u64)BPF_CORE_READ(storage, owner) == address ? storage : 0;
}

/* The address of the value that the map with an identifier has in a storage, which must not go
 * away meanwhile. 0: it has none. TG_TOO_MANY: there are so many other maps that this is not
 * known. */
#define TG_TOO_MANY 1ull

TG_FUNCTION __u64 tg_stored(__u64 at, __u32 map)
{
	struct bpf_local_storage *storage = (void *)at;
	__u64 node = storage ? (__u64)BPF_CORE_READ(storage, list.first) : 0, smap;
	struct bpf_local_storage_elem *element;

	TG_ROLL
	for (int i = 0; i < TG_STORAGES && node; i++) {
		element = (void *)(node -
				   bpf_core_field_offset(struct bpf_local_storage_elem, snode));
		smap = (__u64)BPF_CORE_READ(element, sdata.smap);
		if (BPF_CORE_READ((struct bpf_local_storage_map *)smap, map.id) == map)
			return (__u64)element +
			       bpf_core_field_offset(struct bpf_local_storage_elem, sdata.data);
		node = (__u64)BPF_CORE_READ(element, snode.next);
	}
	return node ? TG_TOO_MANY : 0;
}

/* Whether the map `inodes` has a value for the inode at an address of the kernel's. The value
 * is then in `label`. */
TG_FUNCTION int tg_label_at(__u64 inode, struct tg_inode *label)
{
	__u64 stored = tg_stored((__u64)tg_storage_of(inode), ((struct bpf_map *)&inodes)->id);
	__u64 plain;

	if (!label)
		return 0;
	if (stored && (bpf_probe_read_kernel(label, sizeof *label, (void *)stored) || label->sid))
		return label->sid ? 1 : 0;
	struct inode *at = (void *)inode;
	__u64 anchor = tg_state_address(), sb = (__u64)BPF_CORE_READ(at, i_sb) - anchor;

	plain = tg_find_plain_at(inode - anchor, tg_identity(BPF_CORE_READ(at, i_ino),
							     BPF_CORE_READ(at, i_generation), sb));
	if (!plain)
		return !!stored;
	*label = (struct tg_inode){
		.sid = TG_PLAIN_LABEL_SID(plain),
		.task_sid = TG_PLAIN_LABEL_MAKER(plain),
		.flags = TG_PLAIN_LABEL_FLAGS(plain),
	};
	return 1;
}

/* Likewise for the sock at an address, and the map `sockets`, unless the sock is plain. Without a
 * label a sock would be the machine's. If this is not known, it is unlabelled. */
TG_FUNCTION int tg_socket_at(__u64 sock, struct tg_socket *socket)
{
	struct bpf_local_storage *storage = BPF_CORE_READ((struct sock *)sock, sk_bpf_storage);
	__u64 plain = tg_find_plain_socket(sock - tg_state_address());

	if (plain && socket) {
		*socket = tg_plain_sock(plain)->label;
		return 1;
	}
	if (!storage || (__u64)BPF_CORE_READ(storage, owner) != sock)
		return 0;
	__u64 stored = tg_stored((__u64)storage, ((struct bpf_map *)&sockets)->id);

	if (socket && stored == TG_TOO_MANY) {
		socket->sid = SECINITSID_UNLABELED;
		socket->class = SECCLASS_SOCKET;
		tg_failed(TG_FAILED_SOCKET_STORAGE);
		return 1;
	}
	return socket && stored && !bpf_probe_read_kernel(socket, sizeof *socket, (void *)stored);
}

#endif
