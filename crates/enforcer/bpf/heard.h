/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What datagram sockets have received, for programs that ask who sent it. */
#ifndef TOLLGATE_HEARD_H
#define TOLLGATE_HEARD_H

#include "endpoints.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "socket_label.h"

/* Records that a socket has received a packet, at an address in the kernel, with this label: from
 * anyone, and from its sender. */
static __noinline int tg_hear(struct sock *sk, __u64 packet, __u32 sid)
{
	struct tg_endpoints ends = {};
	struct tg_heard sender = {.socket = bpf_get_socket_cookie(sk)};
	struct tg_socket own = tg_socket_of(sk);

	tg_keep_peer(sk, &own, sid);
	tg_read_packet(packet, &ends);
	sender.family = ends.family;
	sender.port = ends.port[0];
	__builtin_memcpy(sender.address, ends.address[0], sizeof sender.address);
	__u32 *known = bpf_map_lookup_elem(&heard, &sender);

	/* Senders without labels are told from others by having no entry. */
	if (known ? *known != sid : sid != SECINITSID_UNLABELED)
		bpf_map_update_elem(&heard, &sender, &sid, BPF_ANY);
	return 0;
}

#endif
