/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What became of packets, counted. */
#ifndef TOLLGATE_DATAPATH_COUNTERS_H
#define TOLLGATE_DATAPATH_COUNTERS_H

#include <bpf/bpf_endian.h>

#include "../endpoints.h"
#include "../event.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../state.h"
#include "datapath.h"
#include "flow.h"

/*
 * Packets by their fate, enum tg_fate.
 * Writer: the programs.
 * Reader: the daemon, which sums processors.
 * Size: one per fate. It cannot be full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TG_FATES);
	__type(key, __u32);
	__type(value, __u64);
} packets SEC(".maps");

static __always_inline void tg_count_packet(enum tg_fate fate)
{
	__u32 index = fate;
	__u64 *count = bpf_map_lookup_elem(&packets, &index);

	if (count)
		++*count;
}

/* Tells the daemon that a packet was dropped, if this second has room for another event. */
static __always_inline void tg_tell_packet(struct __sk_buff *skb, const struct tg_flow *flow,
					   enum tg_fate fate)
{
	struct tg_event *event = tg_begin_event(TG_EVENT_PACKET, fate);

	if (!event)
		return;
	event->number = fate;
	event->object = TG_OBJECT_PACKET;
	event->device = skb->ifindex;
	tg_ends_of(flow, (struct tg_endpoints *)event->name);
	tg_end_event(event);
}

#endif
