/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What datagram sockets have received, for programs that ask who sent it. */
#ifndef TOLLGATE_HEARD_H
#define TOLLGATE_HEARD_H

#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "socket_label.h"

/* Records that a socket has received a packet with this label. `sender` has the family, the port
 * and the address. */
static __always_inline void tg_hear(struct sock *sk, struct tg_heard *sender, __u32 sid)
{
	struct tg_socket own = tg_socket_of(sk);

	tg_put_peer(sk, &own, sid);
	sender->socket = bpf_get_socket_cookie(sk);
	bpf_map_update_elem(&heard, sender, &sid, BPF_ANY);
}

#endif
