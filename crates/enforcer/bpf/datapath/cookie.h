/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The answer to the beginning of a connection that the kernel does not remember, because so many
 * begin (SYN cookies). No socket is its sender (tcp_make_synack).
 */
#ifndef TOLLGATE_DATAPATH_COOKIE_H
#define TOLLGATE_DATAPATH_COOKIE_H

#include "../contexts.h"
#include "../generation.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../plain_socket.h"
#include "enforcer.h"
#include "flow.h"

static __always_inline int tg_accepts(const struct tg_flow *flow)
{
	return flow->protocol == IPPROTO_TCP &&
	       (flow->kind & (TG_TCP_SYN | TG_TCP_ACK)) == (TG_TCP_SYN | TG_TCP_ACK);
}

/* The SID of the socket that listens where a packet comes from; 0: none does. */
static __noinline __u32 tg_listener_sid(struct __sk_buff *skb, const struct tg_flow *flow)
{
	struct bpf_sock_tuple ends = {};
	__u32 size = flow->six ? sizeof ends.ipv6 : sizeof ends.ipv4, sid = 0;

	/* As a packet that comes has them. */
	if (flow->six) {
		__builtin_memcpy(ends.ipv6.saddr, flow->destination, sizeof ends.ipv6.saddr);
		__builtin_memcpy(ends.ipv6.daddr, flow->source, sizeof ends.ipv6.daddr);
		ends.ipv6.sport = flow->port[1];
		ends.ipv6.dport = flow->port[0];
	} else {
		ends.ipv4.saddr = flow->destination[0];
		ends.ipv4.daddr = flow->source[0];
		ends.ipv4.sport = flow->port[1];
		ends.ipv4.dport = flow->port[0];
	}
	struct bpf_sock *sk = bpf_sk_lookup_tcp(skb, &ends, size, BPF_F_CURRENT_NETNS, 0);

	if (!sk)
		return 0;
	struct tg_sock *kept = sk->state == BPF_TCP_LISTEN ? tg_sock_of(sk) : 0;

	if (kept)
		sid = kept->label.sid;
	bpf_sk_release(sk);
	return sid;
}

/* The SID of the socket that would be accepted, which inet_conn_request has made: the context of
 * the listener with the range of the client. 0: it is not known. */
static __noinline __u32 tg_cookie_sid(struct __sk_buff *skb, const struct tg_flow *flow,
				      __u32 client)
{
	__u32 listener = tg_listener_sid(skb, flow);
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	/* tg_request_connection */
	if (!listener || listener == TG_SID_MACHINE || !client || client == SECINITSID_UNLABELED ||
	    !generation)
		return listener;
	struct tg_context range = tg_context_of(generation, client);
	struct tg_sid_key key = {
		.context = tg_context_of(generation, listener),
		.generation = generation->number,
	};

	key.context.low = range.low;
	key.context.high = range.high;
	__u32 *known = bpf_map_lookup_elem(&sids, &key);

	return known ? *known : 0;
}

#endif
