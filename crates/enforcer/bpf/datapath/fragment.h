/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fragments of one packet must have one label: the kernel keeps that of the first. */
#ifndef TOLLGATE_DATAPATH_FRAGMENT_H
#define TOLLGATE_DATAPATH_FRAGMENT_H

#include "../libbpf.h"
#include "decide.h"
#include "enforcer.h"
#include "flow.h"

/*
 * The SIDs of packets of which fragments have come.
 * Writer and reader: the programs.
 * Size: packets that are put together at a time. Full: the oldest is forgotten.
 */
struct tg_fragment_key {
	__u32 source[4], destination[4];
	__u32 id;
	__u16 protocol, six;
};
struct tg_fragmented {
	__u64 time; /* nanoseconds since boot */
	__u32 sid;
	__u32 reserved;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tg_fragment_key);
	__type(value, struct tg_fragmented);
} fragments SEC(".maps");
#define TG_FRAGMENT_NANOSECONDS 30000000000ull /* ipfrag_time */

/*
 * Whether a fragment has the label of those before it. The kernel tells packets of IPv6 apart
 * without their protocol. Numbers of packets come again: a packet whose number was another label's
 * less than 30 seconds ago is lost.
 */
static __always_inline int tg_is_of_packet(const struct tg_flow *flow, __u32 sid)
{
	struct tg_fragment_key key = {
		.id = flow->id,
		.protocol = flow->six ? 0 : flow->protocol,
		.six = flow->six,
	};

	if (!flow->fragment)
		return 1;
	__builtin_memcpy(key.source, flow->source, sizeof key.source);
	__builtin_memcpy(key.destination, flow->destination, sizeof key.destination);
	struct tg_fragmented *known = bpf_map_lookup_elem(&fragments, &key);
	struct tg_fragmented now = {bpf_ktime_get_boot_ns(), sid};

	if (known && known->sid != sid && now.time - known->time < TG_FRAGMENT_NANOSECONDS)
		return 0;
	bpf_map_update_elem(&fragments, &key, &now, BPF_ANY);
	return 1;
}

#endif
