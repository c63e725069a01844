/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What became of packets, counted. */
#ifndef TOLLGATE_DATAPATH_COUNTERS_H
#define TOLLGATE_DATAPATH_COUNTERS_H

#include "datapath.h"
#include "../libbpf.h"

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

#endif
