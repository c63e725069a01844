/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The zone of an address. */
#ifndef TOLLGATE_DATAPATH_ZONE_H
#define TOLLGATE_DATAPATH_ZONE_H

#include <bpf/bpf_endian.h>

#include "../compiler.h"
#include "../generation.h"
#include "../libbpf.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"

/* 1 if a < b. Without a branch, which the verifier would follow both ways at each step, and which
 * clang would make of it. */
static __always_inline __u64 tg_below(__u64 a, __u64 b)
{
	TG_OPAQUE(a);
	TG_OPAQUE(b);
	return ((~a & b) | ((~a | b) & (a - b))) >> 63;
}

/* The zone of an address of IPv4, in network byte order: 1 + its place; 0: none. The highest range
 * that begins at or below it is found bit by bit. */
TG_FUNCTION __u32 tg_find_zone4(const struct tg_datapath *datapath, __u32 address)
{
	__u32 place = 0;

	if (!datapath)
		return 0;
	__u64 host = bpf_ntohl(address), ranges = datapath->ranges4;

	TG_UNROLL
	for (__u32 bit = TG_ZONE_RANGES / 2; bit; bit >>= 1) {
		__u32 next = place | bit;

		TG_OPAQUE(next);
		next &= TG_ZONE_RANGES - 1;
		__u64 take = tg_below(next, ranges) & ~tg_below(host, datapath->range4[next].first);

		place += bit * (__u32)(take & 1);
	}
	TG_OPAQUE(place);
	return datapath->range4[place & (TG_ZONE_RANGES - 1)].zone;
}

/* Likewise of IPv6. */
struct tg_address6 {
	__u32 word[4];
};
TG_FUNCTION __u32 tg_find_zone6(const struct tg_datapath *datapath,
				const struct tg_address6 *address)
{
	__u32 place = 0;

	if (!datapath || !address)
		return 0;
	__u64 ranges = datapath->ranges6;
	__u64 high = (__u64)bpf_ntohl(address->word[0]) << 32 | bpf_ntohl(address->word[1]);
	__u64 low = (__u64)bpf_ntohl(address->word[2]) << 32 | bpf_ntohl(address->word[3]);

	TG_UNROLL
	for (__u32 bit = TG_ZONE_RANGES / 2; bit; bit >>= 1) {
		__u32 next = place | bit;

		TG_OPAQUE(next);
		next &= TG_ZONE_RANGES - 1;
		const struct tg_range6 *range = &datapath->range6[next];
		__u64 above = tg_below(high, range->first[0]) |
			      (~tg_below(range->first[0], high) & tg_below(low, range->first[1]));
		__u64 take = tg_below(next, ranges) & ~above;

		place += bit * (__u32)(take & 1);
	}
	TG_OPAQUE(place);
	return datapath->range6[place & (TG_ZONE_RANGES - 1)].zone;
}

/* The zone of one end of a packet; 0: none. */
static __always_inline struct tg_zone *tg_find_zone(struct tg_datapath *datapath, __u32 six,
						    const __u32 *address)
{
	__u32 place = six ? tg_find_zone6(datapath, (const struct tg_address6 *)address)
			  : tg_find_zone4(datapath, address[0]);

	return place ? &datapath->zone[(place - 1) & (TG_ZONES - 1)] : 0;
}

/* The domain of a zone that has labels. */
static __always_inline struct tg_doi *tg_doi_of(struct tg_datapath *datapath,
						const struct tg_zone *zone)
{
	return &datapath->doi[(zone->doi - 1) & (TG_DOIS - 1)];
}

#endif
