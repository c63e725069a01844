/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "Too big", with which a router says how long packets may be. It has seen them with their labels,
 * and this machine's IP layer makes them without. So what the label took is subtracted.
 */
#ifndef TOLLGATE_DATAPATH_TOO_BIG_H
#define TOLLGATE_DATAPATH_TOO_BIG_H

#include <bpf/bpf_endian.h>

#include "../ip.h"
#include "../libbpf.h"
#include "flow.h"

#define TG_LEAST_MTU4 68
#define TG_LEAST_MTU6 1280

/* In ICMP for IPv4 the MTU has 16 bits. The quoted header tells its length. */
static __always_inline void tg_correct4(struct __sk_buff *skb, __u32 at)
{
	__u8 head[8];
	struct tg_ipv4 quoted;

	if (bpf_skb_load_bytes(skb, at, head, sizeof head) || head[1] != ICMP_FRAG_NEEDED ||
	    bpf_skb_load_bytes(skb, at + sizeof head, &quoted, sizeof quoted))
		return;
	__u16 was = (__u16)head[6] << 8 | head[7], options = ((quoted.version & 15) - 5) * 4;
	__be16 before = bpf_htons(was), after = bpf_htons(was - options);

	if (!options || options > 40 || was < TG_LEAST_MTU4 + options)
		return;
	bpf_l4_csum_replace(skb, at + 2, before, after, 2);
	bpf_skb_store_bytes(skb, at + 6, &after, sizeof after, 0);
}

/* In ICMPv6 it has 32 bits. The quoted packet's hop-by-hop header tells its length. */
static __always_inline void tg_correct6(struct __sk_buff *skb, __u32 at)
{
	__u8 head[8], header[2];
	struct tg_ipv6 quoted;
	__be32 before, after;

	if (bpf_skb_load_bytes(skb, at, head, sizeof head) ||
	    bpf_skb_load_bytes(skb, at + sizeof head, &quoted, sizeof quoted) ||
	    quoted.next != TG_HOP_BY_HOP ||
	    bpf_skb_load_bytes(skb, at + sizeof head + sizeof quoted, header, sizeof header))
		return;
	__builtin_memcpy(&before, head + 4, sizeof before);
	__u32 was = bpf_ntohl(before), least = TG_LEAST_MTU6 + (header[1] + 1) * 8;

	if (was <= TG_LEAST_MTU6)
		return;
	after = bpf_htonl(was < least ? TG_LEAST_MTU6 : was + TG_LEAST_MTU6 - least);
	bpf_l4_csum_replace(skb, at + 2, before, after, 4);
	bpf_skb_store_bytes(skb, at + 4, &after, sizeof after, 0);
}

static __always_inline void tg_correct_too_big(struct __sk_buff *skb, const struct tg_flow *flow,
					       __u32 at)
{
	if (!tg_is_icmp(flow) || flow->fragment)
		return;
	if (flow->six && flow->kind == ICMPV6_PKT_TOOBIG)
		tg_correct6(skb, at);
	else if (!flow->six && flow->kind == ICMP_DEST_UNREACH)
		tg_correct4(skb, at);
}

#endif
