/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels of sockets: SID and class, of plain socks in a table (plain_socket.h), of the others in
 * their storage. The inode of a socket has the label of its sock.
 *
 * A sock without a label was made by the machine, by the kernel for itself, or before the
 * programs were attached. Its SID is TG_SID_MACHINE.
 */
#ifndef TOLLGATE_SOCKET_LABEL_H
#define TOLLGATE_SOCKET_LABEL_H

#include "address.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "contexts.h"
#include "decide.h"
#include "enforcer.h"
#include "filesystem.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "plain_socket.h"
#include "socket_class.h"
#include "state.h"
#include "storage.h"
#include "tables.h"

/* The class of a sock without a label. */
TG_FUNCTION __u32 tg_sock_class(__u64 sock)
{
	struct sock *sk = (void *)sock;

	return tg_family_class(BPF_CORE_READ(sk, __sk_common.skc_family),
			       BPF_CORE_READ(sk, sk_type), BPF_CORE_READ(sk, sk_protocol));
}

/* What was known of a sock at this address is not about the new one. */
static __always_inline void tg_begin_sock(struct sock *sk)
{
	tg_forget_row(TG_KEY(sk));
	tg_forget_plain_socket(TG_ADDRESS(sk));
}

static __always_inline struct tg_socket tg_socket_of(struct sock *sk)
{
	struct tg_sock *kept = tg_sock_of(sk);

	if (kept)
		return kept->label;
	return (struct tg_socket){TG_SID_MACHINE, tg_sock_class(TG_KERNEL_ADDRESS(sk))};
}

/* Labels a sock that has no label. Returns 0 or -ENOMEM. */
static __noinline int tg_make_sock(struct sock *sk, __u32 sid, __u32 class, __u32 peer)
{
	struct tg_sock first = {.label = {sid, class, peer}};

	if (!tg_is_labelling() && tg_put_plain_socket(TG_ADDRESS(sk), sid, class, peer))
		return 0;
	if (bpf_sk_storage_get(&sockets, sk, &first, BPF_SK_STORAGE_GET_F_CREATE))
		return 0;
	tg_failed(TG_FAILED_SOCKET_STORAGE);
	return -ENOMEM;
}

/* Moves what is kept of a plain sock to its storage. There the daemon finds it, and the kernel
 * copies it to clones. Returns 0 or -ENOMEM. */
static __noinline int tg_settle_sock(struct sock *sk)
{
	__u64 plain = tg_find_plain_socket(TG_ADDRESS(sk));

	if (!plain)
		return 0;
	struct tg_sock first = {.label = tg_plain_sock(plain)->label};

	if (!bpf_sk_storage_get(&sockets, sk, &first, BPF_SK_STORAGE_GET_F_CREATE)) {
		tg_failed(TG_FAILED_SOCKET_STORAGE);
		return -ENOMEM;
	}
	tg_forget_plain_socket(TG_ADDRESS(sk));
	return 0;
}

/* Labels a sock that may have a label. Returns 0 or -ENOMEM. */
static __always_inline int tg_put_sock_label(struct sock *sk, __u32 sid, __u32 class)
{
	struct tg_sock *kept = tg_sock_of(sk);

	if (!kept)
		return tg_make_sock(sk, sid, class, 0);
	kept->label.class = class;
	/* A clone has what was granted on the original. */
	kept->used = 0;
	kept->unconfined = 0;
	WRITE_ONCE(kept->label.sid, sid);
	return 0;
}

/*
 * Whether a sock's domain is unconfined (tg_is_unconfined). The sock remembers it in a word
 *
 *   epoch 62 | it was found 1 | unconfined 1
 *
 * for as long as the policy is in force, because each packet that it receives asks.
 */
static __always_inline int tg_is_sock_unconfined(struct tg_sock *kept)
{
	__u64 found = READ_ONCE(state.epoch) << 2 | 2, known = READ_ONCE(kept->unconfined);

	if ((known | 1) == (found | 1))
		return known & 1;
	found |= tg_is_unconfined(kept->label.sid);
	WRITE_ONCE(kept->unconfined, found);
	return found & 1;
}

/* Records the SID of a sock's peer, and labels the sock if it has no label. Returns 0 or -ENOMEM.
 */
static __always_inline int tg_keep_peer(struct sock *sk, struct tg_socket *own, __u32 peer)
{
	struct tg_sock *kept = tg_sock_of(sk);

	if (!kept)
		return tg_make_sock(sk, own->sid, own->class, peer);
	WRITE_ONCE(kept->label.peer, peer);
	return 0;
}

/* The sock of a socket's inode, both at addresses of the kernel's. 0: it is no socket's, or has no
 * sock, because it is closed. */
static __always_inline __u64 tg_sock_of_inode(__u64 inode)
{
	struct socket *socket =
		(void *)(inode - bpf_core_field_offset(struct socket_alloc, vfs_inode));

	if (BPF_CORE_READ((struct inode *)inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return 0;
	return (__u64)BPF_CORE_READ(socket, sk);
}

/* The label of a socket's inode is that of its sock: the SID, and SECCLASS above it. 0: it has no
 * sock. In one word, because the stack is small. */
TG_FUNCTION __u64 tg_find_socket_label(__u64 inode)
{
	struct tg_socket found = {TG_SID_MACHINE, 0};
	__u64 sock = tg_sock_of_inode(inode);

	if (!sock)
		return 0;
	if (!tg_socket_at(sock, &found))
		found.class = tg_sock_class(sock);
	return (__u64)found.class << 32 | found.sid;
}

/* Labels what has no label of its own, if it is the inode of a socket. */
static __always_inline void tg_label_socket(__u64 inode, struct tg_inode *label)
{
	__u64 found = tg_find_socket_label(inode);

	label->sid = found;
	label->class = found >> 32;
}

/* Whether a connection from this zone of the network may have this context. Counts it if it is new.
 * Zone 0: the connection is the machine's own. */
static __always_inline int tg_may_begin(const struct tg_generation *generation,
					const struct tg_context *context, struct tg_zone *zone)
{
	struct tg_sid_key key = {.context = *context, .generation = generation->number};

	if (!zone || bpf_map_lookup_elem(&sids, &key))
		return 1;
	if (READ_ONCE(zone->connections) >= TG_CONNECTIONS_OF_ZONE ||
	    READ_ONCE(state.packet_connections) >= TG_CONNECTIONS_OF_PACKETS) {
		tg_failed(TG_FAILED_CONNECTIONS);
		return 0;
	}
	/* Several processors may each begin one more. */
	__sync_fetch_and_add(&zone->connections, 1);
	__sync_fetch_and_add(&state.packet_connections, 1);
	return 1;
}

/* security_sid_mls_copy: the SID of a context with the range of another, for a connection from a
 * zone. Returns 0 or -EINVAL. */
TG_FUNCTION int tg_copy_range(__u32 sid, __u32 ranged, struct tg_zone *zone, __u32 *copy)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!generation || !copy) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return -EINVAL;
	}
	struct tg_context context = tg_context_of(generation, sid);
	struct tg_context range = tg_context_of(generation, ranged);

	*copy = sid;
	if (!context.type || !range.type) {
		tg_failed(TG_FAILED_NO_CONTEXT);
		return -EINVAL;
	}
	if (context.low == range.low && context.high == range.high)
		return 0;
	context.low = range.low;
	context.high = range.high;
	if (!tg_valid(&generation->tables, &generation->levels, &context,
		      tg_level(&generation->levels, context.low),
		      tg_level(&generation->levels, context.high))) {
		tg_failed(TG_FAILED_NEW_LABEL);
		if (READ_ONCE(state.enforcing))
			return -EINVAL;
	}
	if (!tg_may_begin(generation, &context, zone))
		return -EINVAL;
	return tg_intern(generation, &context, copy) ? -EINVAL : 0;
}

/* When what sockets have been found to need for their labels must be found again. */
static __always_inline __u32 tg_labels_epoch(void)
{
	return (__u32)READ_ONCE(state.epoch) + READ_ONCE(state.namespaces_epoch) + 1;
}

#endif
