/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The SID of a packet's sender on this machine (selinux_ip_output, selinux_ip_postroute). */
#ifndef TOLLGATE_DATAPATH_SENDER_H
#define TOLLGATE_DATAPATH_SENDER_H

#include "../endpoints.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../plain_socket.h"
#include "carried.h"
#include "cookie.h"
#include "enforcer.h"
#include "flow.h"
#include "memory.h"

/*
 * Packets that the kernel may answer without a process, and their SIDs: an answer has the label of
 * what it answers, as under SELinux, which echoes the option.
 * Writer: the programs, when such a packet comes.
 * Reader: the programs, when the kernel sends an answer.
 * Size: answers that are due at a time. Full: the oldest is forgotten, and the answer has the level
 * of SECINITSID_NETMSG.
 */
struct tg_question_key {
	__u32 asker[4], asked[4];
	__u32 ports; /* the asker's first; 0 of fragments, most of which have none */
	__u16 protocol, six;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tg_question_key);
	__type(value, __u32);
} questions SEC(".maps");

/* The protocol, of which ICMP's two are one. */
static __always_inline __u16 tg_asked_protocol(const struct tg_flow *flow)
{
	return tg_is_icmp(flow) ? IPPROTO_ICMP : flow->protocol;
}

/* Keeps the SID of a question. */
static __always_inline void tg_put_question(const struct tg_flow *flow, __u32 sid)
{
	struct tg_question_key key = {
		.ports = flow->fragment ? 0 : tg_ports_of(flow),
		.protocol = tg_asked_protocol(flow),
		.six = flow->six,
	};

	if (!tg_is_question(flow))
		return;
	__builtin_memcpy(key.asker, flow->source, sizeof key.asker);
	__builtin_memcpy(key.asked, flow->destination, sizeof key.asked);
	bpf_map_update_elem(&questions, &key, &sid, BPF_ANY);
}

/* The SID of what the kernel answers with this packet. */
static __always_inline __u32 tg_answer_sid(const struct tg_flow *flow)
{
	struct tg_question_key key = {
		.ports = flow->fragment ? 0 : (__u32)flow->port[1] << 16 | flow->port[0],
		.protocol = tg_asked_protocol(flow),
		.six = flow->six,
	};

	__builtin_memcpy(key.asker, flow->destination, sizeof key.asker);
	__builtin_memcpy(key.asked, flow->source, sizeof key.asked);
	__u32 *sid = bpf_map_lookup_elem(&questions, &key);

	return sid ? *sid : SECINITSID_NETMSG;
}

/* Whether a socket without a label is one of the kernel's own, which answers for it. */
static __always_inline int tg_is_kernels(const struct bpf_sock *sk)
{
	return sk->type == SOCK_RAW &&
	       (sk->protocol == IPPROTO_TCP || sk->protocol == IPPROTO_ICMP ||
		sk->protocol == IPPROTO_ICMPV6);
}

/*
 * The SID of the socket that has sent a packet; 0: no socket of this machine has. An answer to a
 * connection has the label that the connection will have; its request_sock is no full socket. Some
 * of the kernel's answers have no socket at all, have not come from anywhere, and carry nothing.
 */
static __always_inline __u32 tg_sender_sid(struct __sk_buff *skb, struct tg_flow *flow)
{
	struct bpf_sock *sk = skb->sk, *full = 0;
	struct tg_sock *kept;

	if (!sk && (skb->ingress_ifindex || tg_carried(skb)))
		return 0;
	if (sk)
		full = bpf_sk_fullsock(sk);
	if (sk && !full) {
		__u64 address = (__u64)sk;
		struct tg_connection *connection = bpf_map_lookup_elem(&requests, &address);

		if (connection)
			return connection->sid;
		full = bpf_get_listener_sock(sk);
	}
	/* Not a socket of a process: a tun or tap device's, for packets that come from its file. */
	if (full && full->family == AF_UNSPEC)
		return 0;
	kept = full ? tg_sock_of(full) : 0;
	if (kept)
		return kept->label.sid;
	if (full && !tg_is_kernels(full))
		return TG_SID_MACHINE;
	tg_read_transport(skb, flow);
	__u32 asker = tg_answer_sid(flow),
	      cookie = tg_accepts(flow) ? tg_cookie_sid(skb, flow, asker) : 0;

	flow->answer = !cookie;
	return cookie ? cookie : asker;
}

/* tg_sender_sid for what an open TCP connection sends: data and its acknowledgements, neither
 * questions nor answers for others. 0: it is something else. */
static __always_inline __u32 tg_connection_sid(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk, *full = sk ? bpf_sk_fullsock(sk) : 0;

	if (!full || full->type != SOCK_STREAM || full->protocol != IPPROTO_TCP ||
	    full->state != BPF_TCP_ESTABLISHED)
		return 0;
	struct tg_sock *kept = tg_sock_of(full);

	return kept ? kept->label.sid : TG_SID_MACHINE;
}

#endif
