/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets like those that a socket has received before, for which nothing has to be checked again:
 * they have the same sender, come from the same host by the same device, and the policy is the
 * same.
 */
#ifndef TOLLGATE_ADMITTED_H
#define TOLLGATE_ADMITTED_H

#include <bpf/bpf_endian.h>

#include "address.h"
#include "ip.h"
#include "kernel.h"
#include "libbpf.h"
#include "read.h"
#include "socket_class.h"
#include "state.h"

/* All that the checks of a packet depend on. */
struct tg_arrival {
	__u64 epoch;
	__u64 device;	  /* its address, with TG_ARRIVAL_SIX for IPv6 */
	__u64 socket;	  /* a datagram socket's cookie; 0: not one, or without cookie */
	__u32 address[4]; /* the sender's */
	__u16 port;	  /* the sender's, of UDP, as packets have it */
	__u16 reserved;
	__u16 own, peer; /* the socket's SID and the sender's */
};
#define TG_ARRIVAL_SIX 1ull
#define TG_ARRIVAL_WORDS (sizeof(struct tg_arrival) / sizeof(__u64))

/* For how long an entry is valid, because a device may get another name, and what a socket has
 * heard (heard.h) is kept for as long as it is looked up. A second where HZ is 250, and 2.5 at
 * most. */
#define TG_ADMITTED_JIFFIES 250

struct tg_admitted {
	__u64 turn;  /* odd while the entry is written */
	__u64 until; /* in jiffies */
	__u64 heard; /* heard.h has recorded it */
	__u64 words[TG_ARRIVAL_WORDS];
};

#define TG_ADMITTED 512u

/*
 * Packets that were admitted. Each has one place.
 * Writer and reader: the program. A softirq may interrupt it at any point, on the same processor.
 * Size: senders that are received from at a time. It cannot be full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TG_ADMITTED);
	__type(key, __u32);
	__type(value, struct tg_admitted);
} admitted SEC(".maps");

/* The beginning of a packet; `ports` follow a header of IPv4 without options, or of IPv6. */
struct tg_arriving {
	union {
		struct {
			struct tg_ipv4 four;
			__u16 ports4[2];
		};
		struct {
			struct tg_ipv6 six;
			__u16 ports6[2];
		};
	};
};

/* Reads where a packet comes from; the port if it is of UDP. One read for all of it: each costs as
 * much as the rest. A function of its own, for its stack. */
static __noinline int tg_read_arrival(const struct sk_buff *packet, int udp,
				      struct tg_arrival *arrival)
{
	__u64 head = (__u64)packet->head;
	__u32 at = packet->network_header, transport = packet->transport_header;
	struct tg_arriving arriving = {};

	TG_READ(arriving, head + at);
	arrival->device = TG_ADDRESS(packet->dev);
	if (arriving.four.version >> 4 == 4) {
		arrival->address[0] = arriving.four.source;
		arrival->port = arriving.ports4[0];
		at += sizeof arriving.four;
	} else {
		arrival->device |= TG_ARRIVAL_SIX;
		__builtin_memcpy(arrival->address, arriving.six.source, sizeof arrival->address);
		arrival->port = arriving.ports6[0];
		at += sizeof arriving.six;
	}
	if (!udp)
		arrival->port = 0;
	else if (transport != at)
		TG_READ(arrival->port, head + transport);
	return 0;
}

/* Whether a sock is a connection, which receives packets of its peer alone
 * (__inet_lookup_established). */
static __always_inline int tg_is_connection(const struct sock *sk, __u32 class)
{
	return class == SECCLASS_TCP_SOCKET && sk->__sk_common.skc_state == BPF_TCP_ESTABLISHED;
}

/* tg_read_arrival for a connection, which knows its peer's address. The packet is not read. */
static __always_inline void tg_read_connected(const struct sock *sk, const struct sk_buff *packet,
					      struct tg_arrival *arrival)
{
	arrival->device = TG_ADDRESS(packet->dev);
	if (packet->protocol == bpf_htons(ETH_P_IP)) {
		arrival->address[0] = sk->__sk_common.skc_daddr;
		return;
	}
	const __u32 *peer = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;

	arrival->device |= TG_ARRIVAL_SIX;
	TG_UNROLL
	for (__u32 word = 0; word < 4; word++)
		arrival->address[word] = peer[word];
}

static __always_inline struct tg_admitted *tg_admitted_place(const struct tg_arrival *arrival)
{
	const __u64 *words = (const __u64 *)arrival;
	__u64 mixed = 0;

	TG_UNROLL
	for (__u32 word = 1; word < TG_ARRIVAL_WORDS; word++)
		mixed = (mixed ^ words[word]) * 0x9e3779b97f4a7c15ull;
	__u32 place = mixed >> 55 & (TG_ADMITTED - 1);

	return bpf_map_lookup_elem(&admitted, &place);
}

/* Whether such a packet was admitted. */
static __always_inline int tg_was_admitted(const struct tg_admitted *entry,
					   const struct tg_arrival *arrival)
{
	const __u64 *words = (const __u64 *)arrival;
	__u64 turn = READ_ONCE(entry->turn), differ = turn & 1;

	barrier();
	TG_UNROLL
	for (__u32 word = 0; word < TG_ARRIVAL_WORDS; word++)
		differ |= entry->words[word] ^ words[word];
	barrier();
	return !differ && READ_ONCE(entry->turn) == turn && !READ_ONCE(state.switching) &&
	       bpf_jiffies64() < READ_ONCE(entry->until);
}

/* Enters a packet that was admitted, unless what was interrupted is just writing there. */
static __always_inline void tg_admit(struct tg_admitted *entry, const struct tg_arrival *arrival,
				     int heard)
{
	const __u64 *words = (const __u64 *)arrival;
	__u64 turn = READ_ONCE(entry->turn);

	if (turn & 1)
		return;
	WRITE_ONCE(entry->turn, turn + 1);
	barrier();
	entry->until = bpf_jiffies64() + TG_ADMITTED_JIFFIES;
	entry->heard = heard;
	TG_UNROLL
	for (__u32 word = 0; word < TG_ARRIVAL_WORDS; word++)
		entry->words[word] = words[word];
	barrier();
	WRITE_ONCE(entry->turn, turn + 2);
}

#endif
