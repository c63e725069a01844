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

/* Names of kinds of devices, as words. */
#define TG_VETH 0x68746576ull
#define TG_NETKIT 0x74696b74656eull

/*
 * Whether a packet that has just come by a device may have come from another network namespace.
 * What it carries then is not ours: whoever is root there may have written it, by a filter's class.
 */
static __always_inline int tg_is_from_outside(struct __sk_buff *skb)
{
	__u64 device = 0, operations = 0, kind = 0;
	__u64 name = 0;

	bpf_probe_read_kernel(&device, sizeof device,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	bpf_probe_read_kernel(
		&operations, sizeof operations,
		(void *)(device + bpf_core_field_offset(struct net_device, rtnl_link_ops)));
	bpf_probe_read_kernel(
		&kind, sizeof kind,
		(void *)(operations + bpf_core_field_offset(struct rtnl_link_ops, kind)));
	bpf_probe_read_kernel_str(&name, sizeof name, (void *)kind);
	return name == TG_VETH || name == TG_NETKIT;
}

#endif
