/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SID that a packet carries within this machine, in tc_index: no process can set that, and
 * users have other uses for marks. The accesses are kept apart: the verifier refuses an address
 * within the context that clang has computed for several of them.
 */
#ifndef TOLLGATE_DATAPATH_CARRIED_H
#define TOLLGATE_DATAPATH_CARRIED_H

#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

static __always_inline void tg_carry(struct __sk_buff *skb, __u32 sid)
{
	TG_OPAQUE(skb);
	skb->tc_index = sid;
}

/* 0: none. */
static __always_inline __u32 tg_carried(struct __sk_buff *skb)
{
	TG_OPAQUE(skb);
	return skb->tc_index;
}

#define TG_PACKET_HOST 0 /* for this machine alone (PACKET_HOST) */

/* Names of kinds of devices, as words. */
#define TG_VETH 0x68746576ull
#define TG_NETKIT 0x74696b74656eull
#define TG_BRIDGE 0x656764697262ull
#define TG_BOND 0x646e6f62ull
#define TG_TEAM 0x6d616574ull
#define TG_VLAN 0x6e616c76ull
#define TG_VRF 0x667276ull
#define TG_MACVLAN 0x6e616c7663616dull

/* The name of the kind of the device that a packet has just come by; 0: a plain one. */
static __always_inline __u64 tg_device_kind(struct __sk_buff *skb)
{
	__u64 device = 0, operations = 0, kind = 0, name = 0;

	bpf_probe_read_kernel(&device, sizeof device,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	bpf_probe_read_kernel(
		&operations, sizeof operations,
		(void *)(device + bpf_core_field_offset(struct net_device, rtnl_link_ops)));
	bpf_probe_read_kernel(
		&kind, sizeof kind,
		(void *)(operations + bpf_core_field_offset(struct rtnl_link_ops, kind)));
	bpf_probe_read_kernel_str(&name, sizeof name, (void *)kind);
	return name;
}

/*
 * Whether a packet that has just come by a device has come by one below it before, where its label
 * was taken off. What a packet carries by another device is not ours: a tunnel's is that of the
 * packet around it, and in another network namespace whoever is root may have written it, by a
 * filter's class.
 */
static __always_inline int tg_is_stacked(struct __sk_buff *skb)
{
	__u64 kind = tg_device_kind(skb);

	/* A macvlan device passes packets for many to its siblings itself. */
	if (kind == TG_MACVLAN)
		return skb->pkt_type == TG_PACKET_HOST;
	return kind == TG_BRIDGE || kind == TG_BOND || kind == TG_TEAM || kind == TG_VLAN ||
	       kind == TG_VRF;
}

/* Whether it comes from another network namespace of this machine. */
static __always_inline int tg_is_from_outside(struct __sk_buff *skb)
{
	__u64 kind = tg_device_kind(skb);

	return kind == TG_VETH || kind == TG_NETKIT;
}

#endif
