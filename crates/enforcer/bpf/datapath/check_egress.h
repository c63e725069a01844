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
#include "../shadow.h"
#include "../state.h"
#include "classes.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"
#include "flow.h"
#include "memory.h"

/* Reports a denial (tg_tell_decision, without a task). */
static __always_inline void tg_tell_egress(const struct tg_packet_room *room, int denied)
{
	const struct tg_request *request = &room->request;
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_event *event = tg_begin_event(TG_EVENT_AVC, request->source);

	if (!event)
		return;
	event->generation = generation ? generation->number : 0;
	event->source = request->source;
	event->target = request->target;
	event->class = request->class;
	event->requested = request->av;
	event->denied = request->denied;
	event->permissive = !denied;
	event->object = TG_OBJECT_PACKET;
	event->result = denied ? EACCES : 0;
	__builtin_memcpy(event->name, &room->ends, sizeof room->ends);
	tg_end_event(event);
}

/* Counts a packet that the candidate would have decided otherwise. A function of its own, for its
 * stack. */
TG_FUNCTION int tg_note_packet(const struct tg_request *request, __u32 allowed)
{
	struct tg_difference first = {};

	if (request)
		tg_add_difference(request, allowed, request->denied, &first);
	return 0;
}

/* avc_has_perm for the packet and the request in `room`. Returns whether it is denied. */
TG_FUNCTION int tg_is_egress_denied(struct tg_packet_room *room)
{
	if (!room)
		return 1;
	struct tg_request *request = &room->request;
	__u64 key = TG_AVC_KEY(request->source, request->target, request->class);
	__u64 began = READ_ONCE(state.epoch), tag = tg_avc_tag(key, began);
	__u64 *entry = tg_avc_entry(key), found = READ_ONCE(*entry) ^ tag;
	struct tg_decision *answer = &room->answer;
	__u32 kept;
	int denied;

	if (!(found >> 32) && !(request->av & ~(__u32)found) && !READ_ONCE(state.switching))
		return 0;
	request->quiet = 0;
	tg_ask_shadow(request, answer);
	tg_answer(TG_IN_FORCE, request, answer);
	if (tg_differs_from_shadow(request, answer->allowed))
		tg_note_packet(request, answer->allowed);
	kept = request->allowed;
	request->denied = request->av & ~answer->allowed;
	denied = request->denied && READ_ONCE(state.enforcing) && !answer->permissive;
	if (request->denied & answer->auditdeny)
		tg_tell_egress(room, denied);
	/* What is granted in permissive mode is reported each time. */
	__sync_lock_test_and_set(entry, tag | (answer->allowed & ~answer->auditallow & kept));
	if (READ_ONCE(state.epoch) != began)
		WRITE_ONCE(*entry, 0);
	return denied;
}

/* One question about the packet in `room`. */
static __always_inline int tg_is_denied(struct tg_packet_room *room, __u32 target, __u32 class,
					__u32 av)
{
	room->request.target = target;
	room->request.class = class;
	room->request.av = av;
	return tg_is_egress_denied(room);
}

/* The SID of one end. */
static __always_inline __u32 tg_host_sid(struct tg_packet_room *room, __u32 end)
{
	return tg_node_sid(room->ends.family, (void *)room->ends.address[end]);
}

/* All questions about a packet of `sid`, which passes through or is this machine's own. Returns
 * whether one is denied. */
TG_FUNCTION int tg_may_not_leave(struct tg_packet_room *room, __u32 sid, __u32 passes)
{
	if (!room)
		return 1;
	room->request.source = sid;
	room->request.manager = TG_MANAGER_NETWORK;
	room->request.object = TG_OBJECT_PACKET;
	if (tg_has_policycap(TG_POLICYCAP_NETPEER)) {
		if (passes &&
		    tg_is_denied(room, tg_host_sid(room, 0), SECCLASS_NODE, NODE__RECVFROM))
			return 1;
		if (tg_is_denied(room, tg_interface_sid((void *)room->ends.interface),
				 SECCLASS_NETIF, NETIF__EGRESS) ||
		    tg_is_denied(room, tg_host_sid(room, 1), SECCLASS_NODE, NODE__SENDTO))
			return 1;
	}
	/* selinux_secmark_enabled: no packet has a secmark. */
	if (!tg_has_policycap(TG_POLICYCAP_ALWAYSNETWORK))
		return 0;
	return tg_is_denied(room, SECINITSID_UNLABELED, SECCLASS_PACKET,
			    passes ? PACKET__FORWARD_IN | PACKET__FORWARD_OUT : PACKET__SEND);
}

/* The ends of the packet in `room`, and the name of the device by which it leaves. The program's
 * context is the packet itself, where the kernel's memory is read. */
static __always_inline void tg_find_ends(struct __sk_buff *skb, struct tg_packet_room *room)
{
	const struct tg_flow *flow = &room->flow;
	struct tg_endpoints *ends = &room->ends;
	__u64 device = 0;

	tg_ends_of(flow, ends);
	bpf_probe_read_kernel(&device, sizeof device,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	bpf_probe_read_kernel_str(
		ends->interface, sizeof ends->interface,
		(void *)(device + bpf_core_field_offset(struct net_device, name)));
}

/* Checks a packet that leaves. If the policy does not tell interfaces apart, what is allowed once
 * is, until the policy changes: `label` is of its sender and destination. Returns whether it is
 * denied. */
static __always_inline int tg_check_egress(struct __sk_buff *skb, struct tg_packet_room *room,
					   struct tg_known_label *label, __u32 sid)
{
	struct tg_generation *generation;
	__u32 passes = !skb->sk && skb->ingress_ifindex;

	if (label->checked && !passes)
		return 0;
	/* Its sender is the kernel, whosever label it has. */
	if (room->flow.answer)
		return 0;
	if (passes ? sid == SECINITSID_UNLABELED : tg_is_unconfined(sid))
		return 0;
	tg_read_transport(skb, &room->flow);
	tg_find_ends(skb, room);
	if (tg_may_not_leave(room, sid, passes))
		return 1;
	generation = tg_find_generation(TG_IN_FORCE);
	label->checked = generation && !passes && !generation->network.interface[0].sid;
	return 0;
}

#endif
