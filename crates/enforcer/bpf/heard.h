/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What datagram sockets have received, for programs that ask who sent it. */
#ifndef TOLLGATE_HEARD_H
#define TOLLGATE_HEARD_H

#include "admitted.h"
#include "endpoints.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "socket_label.h"

/* Records what a socket has received last: from anyone, and from the sender of this packet. */
static __noinline int tg_hear(struct sock *sk, struct tg_socket *own,
			      const struct tg_arrival *arrival)
{
	struct tg_heard sender = {
		.socket = bpf_get_socket_cookie(sk),
		.family = arrival->device & TG_ARRIVAL_SIX ? AF_INET6 : AF_INET,
		.port = tg_swap(arrival->port),
	};

	__u32 sid = arrival->peer;

	if (own->peer != sid)
		tg_keep_peer(sk, own, sid);
	__builtin_memcpy(sender.address, arrival->address, sizeof sender.address);
	__u32 *known = bpf_map_lookup_elem(&heard, &sender);

	/* Senders without labels are told from others by having no entry. */
	if (known ? *known != sid : sid != SECINITSID_UNLABELED)
		bpf_map_update_elem(&heard, &sender, &sid, BPF_ANY);
	return 0;
}

#endif
