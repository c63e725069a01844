/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What SELinux checks for packets that leave (selinux_ip_postroute) and for those that pass through
 * (selinux_ip_forward). It does so at netfilter's hooks. Here no task is current, so a denial names
 * none, and no task is permissive. A packet that passes through is checked if it has a label: the
 * machine forwards all others as before. The interface by which it came is not known here.
 */
#ifndef TOLLGATE_DATAPATH_CHECK_EGRESS_H
#define TOLLGATE_DATAPATH_CHECK_EGRESS_H

#include "../answer.h"
#include "../cache.h"
#include "../endpoints.h"
#include "../event.h"
#include "../libbpf.h"
#include "../network.h"
#include "../request.h"
#include "../state.h"
#include "classes.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"
#include "flow.h"
#include "memory.h"

/* Reports a denial (tg_tell_decision, without a task). */
static __noinline void tg_tell_egress(const struct tg_request *request,
				      const struct tg_endpoints *ends, int denied)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct tg_event *event;

	if (!tg_within_limit(request->source, now))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return;
	}
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	__builtin_memset(event, 0, sizeof *event);
	event->time = now;
	event->kind = TG_EVENT_AVC;
	event->generation = generation ? generation->number : 0;
	event->source = request->source;
	event->target = request->target;
	event->class = request->class;
	event->requested = request->av;
	event->denied = request->denied;
	event->permissive = !denied;
	event->object = TG_OBJECT_PACKET;
	event->result = denied ? EACCES : 0;
	__builtin_memcpy(event->name, ends, sizeof *ends);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
}

/* avc_has_perm for a packet: 0 or -EACCES. */
static __noinline int tg_ask_egress(struct tg_request *request, const struct tg_endpoints *ends)
{
	__u64 key = TG_AVC_KEY(request->source, request->target, request->class);
	__u64 began = READ_ONCE(state.epoch), tag = tg_avc_tag(key, began);
	__u64 *entry = tg_avc_entry(key), found = READ_ONCE(*entry) ^ tag;
	struct tg_decision answer = {};
	int denied;

	if (!(found >> 32) && !(request->av & ~(__u32)found) && !READ_ONCE(state.switching))
		return 0;
	tg_answer(TG_IN_FORCE, request, &answer);
	request->denied = request->av & ~answer.allowed;
	denied = request->denied && READ_ONCE(state.enforcing) && !answer.permissive;
	if (request->denied & answer.auditdeny)
		tg_tell_egress(request, ends, denied);
	/* What is granted in permissive mode is reported each time. */
	__sync_lock_test_and_set(entry, tag | (answer.allowed & ~answer.auditallow));
	if (READ_ONCE(state.epoch) != began)
		WRITE_ONCE(*entry, 0);
	return denied ? -EACCES : 0;
}

/* One question about a packet from `source`. */
static __always_inline int tg_ask_packet_of(__u32 source, __u32 target, __u32 class, __u32 av,
					    const struct tg_endpoints *ends)
{
	struct tg_request request = {
		.source = source,
		.target = target,
		.class = class,
		.av = av,
		.manager = TG_MANAGER_NETWORK,
		.object = TG_OBJECT_PACKET,
	};

	return tg_ask_egress(&request, ends);
}

static __always_inline __u32 tg_host_sid(const struct tg_endpoints *ends, const __u32 *address)
{
	struct tg_host host = {.family = ends->family};

	__builtin_memcpy(host.address, address, sizeof host.address);
	return tg_node_sid(&host);
}

/* All questions: 0 or -EACCES. */
static __noinline int tg_ask_all(__u32 sid, const struct tg_endpoints *ends, __u32 passes)
{
	if (tg_has_policycap(TG_POLICYCAP_NETPEER)) {
		if (passes && tg_ask_packet_of(sid, tg_host_sid(ends, ends->address[0]),
					       SECCLASS_NODE, NODE__RECVFROM, ends))
			return -EACCES;
		if (tg_ask_packet_of(sid, tg_interface_sid(ends), SECCLASS_NETIF, NETIF__EGRESS,
				     ends) ||
		    tg_ask_packet_of(sid, tg_host_sid(ends, ends->address[1]), SECCLASS_NODE,
				     NODE__SENDTO, ends))
			return -EACCES;
	}
	/* selinux_secmark_enabled: no packet has a secmark. */
	if (!tg_has_policycap(TG_POLICYCAP_ALWAYSNETWORK))
		return 0;
	return tg_ask_packet_of(sid, SECINITSID_UNLABELED, SECCLASS_PACKET,
				passes ? PACKET__FORWARD_IN | PACKET__FORWARD_OUT : PACKET__SEND,
				ends);
}

/* The ends of a packet, and the name of the device by which it leaves. The program's context is the
 * packet itself, where the kernel's memory is read. */
static __always_inline void tg_ends_of(struct __sk_buff *skb, const struct tg_flow *flow,
				       struct tg_endpoints *ends)
{
	__u64 device = 0;

	ends->family = flow->six ? AF_INET6 : AF_INET;
	ends->port[0] = bpf_ntohs(flow->port[0]);
	ends->port[1] = bpf_ntohs(flow->port[1]);
	__builtin_memcpy(ends->address[0], flow->source, sizeof ends->address[0]);
	__builtin_memcpy(ends->address[1], flow->destination, sizeof ends->address[1]);
	bpf_probe_read_kernel(&device, sizeof device,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	bpf_probe_read_kernel_str(
		ends->interface, sizeof ends->interface,
		(void *)(device + bpf_core_field_offset(struct net_device, name)));
}

/* Checks a packet that leaves. What is allowed once is, until the policy changes: `label` is of its
 * sender and destination. Returns 0 or -EACCES. */
static __always_inline int tg_check_egress(struct __sk_buff *skb, const struct tg_flow *flow,
					   struct tg_known_label *label, __u32 sid)
{
	struct tg_endpoints ends = {};
	__u32 passes = !skb->sk && skb->ingress_ifindex, device = skb->ifindex;

	if (label->device == device && !passes)
		return 0;
	if (passes ? sid == SECINITSID_UNLABELED : tg_is_unconfined(sid))
		return 0;
	tg_ends_of(skb, flow, &ends);
	if (tg_ask_all(sid, &ends, passes))
		return -EACCES;
	label->device = device;
	return 0;
}

#endif
