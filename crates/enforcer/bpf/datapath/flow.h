/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a packet comes from and goes to, read from its headers. */
#ifndef TOLLGATE_DATAPATH_FLOW_H
#define TOLLGATE_DATAPATH_FLOW_H

#include <bpf/bpf_endian.h>

#include "../endpoints.h"
#include "../ip.h"
#include "../libbpf.h"
#include "../socket_class.h"
#include "decide.h"

#define TG_ETHER_HEADER 14u
#define TG_IPV4_HEADER 20u
#define TG_IPV6_HEADER 40u

#define TG_HOP_BY_HOP 0u
#define TG_FRAGMENT_HEADER 44u
#define IPPROTO_IGMP 2u

enum {
	ICMP_ECHOREPLY = 0,
	ICMP_DEST_UNREACH = 3,
	ICMP_ECHO = 8,
	ICMP_TIME_EXCEEDED = 11,
	ICMP_PARAMETERPROB = 12
};
#define ICMP_FRAG_NEEDED 4
enum {
	ICMPV6_PKT_TOOBIG = 2,
	ICMPV6_ERRORS = 128,
	ICMPV6_ECHO_REQUEST = 128,
	ICMPV6_ECHO_REPLY = 129,
	ICMPV6_MGM_QUERY = 130,
	ICMPV6_NDISC_LAST = 137
};
#define TG_NEAR 0xffu /* within so many bytes, headers are looked for in a packet's first part */
#define TG_TCP_SYN 0x02
#define TG_TCP_RST 0x04
#define TG_TCP_ACK 0x10

/* A packet. Addresses and ports are as packets have them; those of IPv4 are in the first word. */
struct tg_flow {
	__u32 source[4], destination[4];
	/* The next two are 0 until tg_read_transport has read them. */
	__u16 port[2]; /* ICMP's echoes: their identifier, twice; fragments but the first: 0 */
	__u8 kind;     /* TCP: its flags; ICMP: its type; likewise */
	__u8 protocol;
	__u8 fragment; /* it is one */
	__u8 six;      /* IPv6 */
	__u8 answer;   /* the kernel answers with it, without a process */
	__u8 reserved;
	__u32 id;	 /* of a fragment */
	__u32 options;	 /* bytes of options of IPv4, or of the hop-by-hop header of IPv6 */
	__u32 room;	 /* bytes that the packet's length can still grow by */
	__u32 transport; /* where the next protocol's header begins; 0: not in this packet */
};

/* The ends of a packet, as events have them. */
static __always_inline void tg_ends_of(const struct tg_flow *flow, struct tg_endpoints *ends)
{
	ends->family = flow->six ? AF_INET6 : AF_INET;
	ends->port[0] = bpf_ntohs(flow->port[0]);
	ends->port[1] = bpf_ntohs(flow->port[1]);
	__builtin_memcpy(ends->address[0], flow->source, sizeof ends->address[0]);
	__builtin_memcpy(ends->address[1], flow->destination, sizeof ends->address[1]);
}

/* ICMP, by the flow's version. */
static __always_inline int tg_is_icmp(const struct tg_flow *flow)
{
	return flow->protocol == (flow->six ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

/* Reads them from the packet's first part, where TCP's nearly always are. 0: they are not there. */
static __always_inline int tg_read_near_tcp(struct __sk_buff *skb, __u32 at, struct tg_flow *flow)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	TG_OPAQUE(at);
	if (at > TG_NEAR || data + at + sizeof(struct tg_tcp) > end)
		return 0;
	struct tg_tcp *tcp = data + at;

	flow->port[0] = tcp->source;
	flow->port[1] = tcp->destination;
	flow->kind = tcp->flags;
	return 1;
}

/* Reads the ports, flags and types at the beginning of what follows IP. Few packets need it. */
static __always_inline void tg_read_transport(struct __sk_buff *skb, struct tg_flow *flow)
{
	__u8 head[sizeof(struct tg_tcp)] = {};
	__u32 at = flow->transport;

	if (!at)
		return;
	switch (flow->protocol) {
	case IPPROTO_TCP:
		if (tg_read_near_tcp(skb, at, flow))
			return;
		if (!bpf_skb_load_bytes(skb, at, head, sizeof head)) {
			flow->kind = ((struct tg_tcp *)head)->flags;
			break;
		}
		/* A fragment may be as short as this. */
		bpf_skb_load_bytes(skb, at, head, 4);
		break;
	case IPPROTO_UDP:
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
		bpf_skb_load_bytes(skb, at, head, 4);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (bpf_skb_load_bytes(skb, at, head, 8))
			return;
		flow->kind = head[0];
		__builtin_memcpy(&flow->port[0], head + 4, 2);
		flow->port[1] = flow->port[0];
		return;
	default:
		return;
	}
	__builtin_memcpy(flow->port, head, sizeof flow->port);
}

static __always_inline int tg_read_flow4(struct __sk_buff *skb, __u32 at, struct tg_flow *flow)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv4 *ip = data + at;

	if ((void *)(ip + 1) > end || (ip->version & 0xf0) != 0x40 || (ip->version & 0xf) < 5)
		return 0;
	flow->source[0] = ip->source;
	flow->destination[0] = ip->destination;
	flow->protocol = ip->protocol;
	flow->options = (ip->version & 0xf) * 4 - TG_IPV4_HEADER;
	flow->room = 0xffff - bpf_ntohs(ip->length);
	flow->fragment = !!(ip->fragment & (TG_FRAGMENT | TG_MORE_FRAGMENTS));
	flow->id = ip->id;
	if (!(ip->fragment & TG_FRAGMENT))
		flow->transport = at + TG_IPV4_HEADER + flow->options;
	return 1;
}

/* What follows the fixed header: the hop-by-hop header, and a fragment's. */
static __always_inline int tg_read_extensions(struct __sk_buff *skb, __u32 at, __u32 next,
					      struct tg_flow *flow)
{
	__u8 head[8];
	__u32 first = 1;

	if (next == TG_HOP_BY_HOP) {
		if (bpf_skb_load_bytes(skb, at, head, sizeof head))
			return 0;
		next = head[0];
		flow->options = (head[1] + 1) * 8;
		at += flow->options;
	}
	if (next == TG_FRAGMENT_HEADER) {
		if (bpf_skb_load_bytes(skb, at, head, sizeof head))
			return 0;
		next = head[0];
		flow->fragment = 1;
		first = !(head[2] | (head[3] & 0xf8));
		__builtin_memcpy(&flow->id, head + 4, sizeof flow->id);
		at += sizeof head;
	}
	flow->protocol = next;
	flow->transport = first ? at : 0;
	return 1;
}

static __always_inline int tg_read_flow6(struct __sk_buff *skb, __u32 at, struct tg_flow *flow)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv6 *ip = data + at;

	if ((void *)(ip + 1) > end)
		return 0;
	__builtin_memcpy(flow->source, ip->source, sizeof flow->source);
	__builtin_memcpy(flow->destination, ip->destination, sizeof flow->destination);
	flow->six = 1;
	/* A jumbogram has length 0: nothing can be added to its header. */
	flow->room = ip->length ? 0xffff - bpf_ntohs(ip->length) : 0;
	return tg_read_extensions(skb, at + TG_IPV6_HEADER, ip->next, flow);
}

enum tg_read { TG_READ_OTHER, TG_READ_BAD, TG_READ_OK };

/* What follows the link header. Ethernet says it in the packet, and a process that writes whole
 * packets may say something else beside it. */
static __always_inline __u16 tg_network_protocol(struct __sk_buff *skb, __u32 at)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	/* Some drivers leave headers in pages. */
	if (data + at + TG_IPV6_HEADER > end) {
		bpf_skb_pull_data(skb, at + TG_IPV4_HEADER);
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	if (!at || data + TG_ETHER_HEADER > end)
		return skb->protocol;
	return *(__u16 *)(data + TG_ETHER_HEADER - 2);
}

/* Reads a packet whose network header is at `at`. */
static __always_inline enum tg_read tg_read_flow(struct __sk_buff *skb, __u32 at,
						 struct tg_flow *flow)
{
	__u16 protocol = tg_network_protocol(skb, at);
	int read;

	__builtin_memset(flow, 0, sizeof *flow);
	if (protocol == bpf_htons(ETH_P_IP))
		read = tg_read_flow4(skb, at, flow);
	else if (protocol == bpf_htons(ETH_P_IPV6))
		read = tg_read_flow6(skb, at, flow);
	else
		return TG_READ_OTHER;
	return read ? TG_READ_OK : TG_READ_BAD;
}

/* Whether packets of this kind never have a label: those by which a link is kept, which do not
 * leave it (IGMP, MLD, neighbour discovery). */
static __always_inline int tg_is_of_link(const struct tg_flow *flow)
{
	if (!flow->six)
		return flow->protocol == IPPROTO_IGMP;
	return flow->protocol == IPPROTO_ICMPV6 &&
	       ((flow->kind >= ICMPV6_MGM_QUERY && flow->kind <= ICMPV6_NDISC_LAST) ||
		flow->kind == 143);
}

/* Packets of which some may come without a label where others may not. */
static __always_inline int tg_is_special(const struct tg_flow *flow)
{
	return tg_is_icmp(flow) || flow->protocol == IPPROTO_IGMP;
}

/* An error of ICMP, which quotes the packet that it is about. */
static __always_inline int tg_is_error(const struct tg_flow *flow)
{
	if (!tg_is_icmp(flow))
		return 0;
	return flow->six ? flow->kind && flow->kind < ICMPV6_ERRORS
			 : flow->kind == ICMP_DEST_UNREACH || flow->kind == ICMP_TIME_EXCEEDED ||
				   flow->kind == ICMP_PARAMETERPROB;
}

/* A packet that the kernel itself may answer, without a process: the beginning of a connection, or
 * an echo request. */
static __always_inline int tg_is_question(const struct tg_flow *flow)
{
	if (flow->protocol == IPPROTO_TCP)
		return (flow->kind & (TG_TCP_SYN | TG_TCP_ACK)) == TG_TCP_SYN;
	return tg_is_icmp(flow) && flow->kind == (flow->six ? ICMPV6_ECHO_REQUEST : ICMP_ECHO);
}

#endif
