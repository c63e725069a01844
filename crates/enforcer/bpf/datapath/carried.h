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
#include "../state.h"
#include "flow.h"
#include "sealed.h"

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

/* The name of the kind of the device that a packet is at; 0: a plain one. */
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
 * What proves that a packet carries the SID of its sender where others may write it: SipHash-2-4 in
 * the packet's hash. Root in a user's network namespace can write tc_index, but the hash is the
 * kernel's. 0: there is no secret.
 */
static __noinline __u32 tg_proof(const struct tg_flow *flow, __u32 sid)
{
	const __u64 *source = (const __u64 *)flow->source;
	const __u64 *destination = (const __u64 *)flow->destination;
	struct tg_seal_key secret = {
		.word = {READ_ONCE(state.secret), READ_ONCE(state.secret_rest)}};
	struct tg_siphash hash = tg_siphash_start(&secret);

	if (!secret.word[0])
		return 0;
	tg_siphash_word(&hash, source[0] | destination[0] << 32);
	if (flow->six) {
		tg_siphash_word(&hash, source[0] >> 32 | destination[0] >> 32 << 32);
		tg_siphash_word(&hash, source[1]);
		tg_siphash_word(&hash, destination[1]);
	}
	tg_siphash_word(&hash, (__u64)sid << 16 | flow->six << 8 | flow->protocol);
	return tg_siphash_end(&hash, flow->six ? 40 : 16);
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

/* Whether the device leads to another network namespace of this machine. */
static __always_inline int tg_is_from_outside(struct __sk_buff *skb)
{
	__u64 kind = tg_device_kind(skb);

	return kind == TG_VETH || kind == TG_NETKIT;
}

/* Whether a packet is in a network namespace of which a user is root. Who administers the machine's
 * own is trusted. */
static __always_inline int tg_is_in_users(struct __sk_buff *skb)
{
	__u64 device = 0, net = 0, owner = 0;
	__u32 level = 1;

	if (!READ_ONCE(state.users_namespaces))
		return 0;
	bpf_probe_read_kernel(&device, sizeof device,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	bpf_probe_read_kernel(
		&net, sizeof net,
		(void *)(device + bpf_core_field_offset(struct net_device, nd_net.net)));
	bpf_probe_read_kernel(&owner, sizeof owner,
			      (void *)(net + bpf_core_field_offset(struct net, user_ns)));
	bpf_probe_read_kernel(
		&level, sizeof level,
		(void *)(owner + bpf_core_field_offset(struct user_namespace, level)));
	return level;
}

/* Proves the SID that a packet carries, to another network namespace or in one of a user. */
static __always_inline void tg_prove(struct __sk_buff *skb, const struct tg_flow *flow, __u32 sid)
{
	bpf_set_hash(skb, tg_proof(flow, sid));
}

/* The SID that a packet carries, if that is proved; else 0. */
static __always_inline __u32 tg_proven(struct __sk_buff *skb, const struct tg_flow *flow)
{
	__u32 sid = tg_carried(skb), proof = sid ? tg_proof(flow, sid) : 0;

	return proof && skb->hash == proof ? sid : 0;
}

#endif
