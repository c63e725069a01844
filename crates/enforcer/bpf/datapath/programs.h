/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs that network devices run. `_ether` is for devices whose packets begin with an
 * Ethernet header, `_ip` for those without link header (tunnels, wg0).
 */
#ifndef TOLLGATE_DATAPATH_PROGRAMS_H
#define TOLLGATE_DATAPATH_PROGRAMS_H

#include "counters.h"
#include "../libbpf.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_OK 0
#define TC_ACT_SHOT 2

SEC("tc") int egress_ether(struct __sk_buff *skb)
{
	tg_count_packet(TG_PACKET_PLAIN);
	return TC_ACT_UNSPEC;
}

SEC("tc") int egress_ip(struct __sk_buff *skb)
{
	tg_count_packet(TG_PACKET_PLAIN);
	return TC_ACT_UNSPEC;
}

SEC("tc") int egress_loopback(struct __sk_buff *skb)
{
	tg_count_packet(TG_PACKET_LOCAL);
	return TC_ACT_UNSPEC;
}

SEC("tc") int ingress_ether(struct __sk_buff *skb)
{
	tg_count_packet(TG_PACKET_UNLABELLED);
	return TC_ACT_UNSPEC;
}

SEC("tc") int ingress_ip(struct __sk_buff *skb)
{
	tg_count_packet(TG_PACKET_UNLABELLED);
	return TC_ACT_UNSPEC;
}

#endif
