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
	__u64 now = bpf_ktime_get_boot_ns();
	struct tg_event *event = 0;

	if (!tg_within_limit(fate, now))
		return;
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < TG_EVENTS - TG_EVENTS_OF_BELLS)
		event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return;
	}
	struct tg_endpoints *ends = (void *)event->name;

	__builtin_memset(event, 0, sizeof *event);
	event->time = now;
	event->kind = TG_EVENT_PACKET;
	event->number = fate;
	event->object = TG_OBJECT_PACKET;
	event->device = skb->ifindex;
	ends->family = flow->six ? AF_INET6 : AF_INET;
	ends->port[0] = bpf_ntohs(flow->port[0]);
	ends->port[1] = bpf_ntohs(flow->port[1]);
	__builtin_memcpy(ends->address[0], flow->source, sizeof ends->address[0]);
	__builtin_memcpy(ends->address[1], flow->destination, sizeof ends->address[1]);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
}

#endif
