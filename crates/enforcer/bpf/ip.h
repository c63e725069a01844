/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Headers of packets, in network byte order. */
#ifndef TOLLGATE_IP_H
#define TOLLGATE_IP_H

#include <linux/types.h>

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

struct tg_ipv4 {
	__u8 version; /* and the header's length in words */
	__u8 service;
	__u16 length, id, fragment;
	__u8 life, protocol;
	__u16 sum;
	__u32 source, destination;
};

struct tg_ipv6 {
	__u32 flow;
	__u16 length;
	__u8 next, life;
	__u32 source[4], destination[4];
};

/* The first bytes of a packet, from its network header on: IPv4 without options, or IPv6. */
union tg_packet {
	struct tg_ipv4 v4;
	struct tg_ipv6 v6;
};

#define TG_FRAGMENT 0xff1f /* the offset: 13 bits */
#define TG_MORE_FRAGMENTS 0x0020

/* The first part of its header. */
struct tg_tcp {
	__u16 source, destination, sequence[2], acknowledged[2];
	__u8 offset, flags;
};

#endif
