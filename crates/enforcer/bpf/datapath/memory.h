/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each processor's own memory: the labels that it has written and read, and room to write and
 * read others. Network devices run programs with softirqs off, one at a time per processor, so
 * no entry needs a lock.
 */
#ifndef TOLLGATE_DATAPATH_MEMORY_H
#define TOLLGATE_DATAPATH_MEMORY_H

#include "../compiler.h"
#include "../libbpf.h"
#include "../network.h"
#include "../request.h"
#include "calipso.h"
#include "datapath.h"
#include "enforcer.h"
#include "flow.h"
#include "netlabel.h"
#include "tables.h"

#define TG_KNOWN_LABELS 1024u
#define TG_KNOWN_BYTES 40u /* longer headers of IPv6 are written and read anew each time */

/* A label that was written or read. */
struct tg_known_label {
	__u64 epoch;	  /* of the state that it was computed from */
	__u32 sid;	  /* of the sender */
	__u32 fate;	  /* enum tg_fate */
	__u32 length;	  /* bytes of options, or of the hop-by-hop header */
	__u32 sum;	  /* written: of these bytes, as IPv4's checksum has it */
	__u16 begin, end; /* read: where the label is in them */
	__u32 checked;	  /* written: such packets may leave */
	__u32 address[4]; /* sent: the destination; received: the source */
	__u32 other[4];	  /* sealed: the other end */
	__u32 ports;	  /* sealed */
	__u16 protocol;	  /* sealed */
	__u8 sealed;	  /* it is valid for this flow and this window alone */
	__u8 six;	  /* of IPv6 */
	__u64 window;	  /* sealed */
	__u64 bytes[TG_KNOWN_BYTES / 8];
};

/*
 * Labels that were written, by sender and destination, and labels that were read, by source and
 * bytes. Each has one place. What differs from the entry there is computed anew.
 * Writer and reader: the programs.
 * Size: labels and destinations that are in use at a time. It cannot be full.
 */
struct tg_known_labels {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TG_KNOWN_LABELS);
	__type(key, __u32);
	__type(value, struct tg_known_label);
};
struct tg_known_labels written_labels SEC(".maps"), read_labels SEC(".maps");

/*
 * Room for one packet.
 * Writer and reader: the program that handles the packet.
 * Size: one per processor.
 */
struct tg_packet_room {
	struct tg_flow flow;
	struct tg_netlabel label;
	union {
		struct tg_ipv4_options four;
		struct tg_ipv6_options six;
	} options;
	struct tg_level level;
	/* To ask whether it may leave. */
	struct tg_endpoints ends;
	struct tg_request request;
	struct tg_decision answer;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tg_packet_room);
} packet_room SEC(".maps");

static __always_inline struct tg_packet_room *tg_find_room(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&packet_room, &zero);
}

/* A length from 1 to TG_IPV6_BUFFER, as it is; the verifiers see no bounds else. */
static __always_inline __u32 tg_buffer_length(__u32 length)
{
	length--;
	TG_OPAQUE(length);
	return (length & (TG_IPV6_BUFFER - 1)) + 1;
}

/* The place of a label that was written or read. */
static __always_inline struct tg_known_label *tg_label_place(void *known, __u64 key)
{
	__u32 place = key * 0x9e3779b97f4a7c15ull >> 54 & (TG_KNOWN_LABELS - 1);

	return bpf_map_lookup_elem(known, &place);
}

static __always_inline int tg_same_address(const __u32 *one, const __u32 *other)
{
	const __u64 *a = (const __u64 *)one, *b = (const __u64 *)other;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]));
}

static __always_inline __u32 tg_ports_of(const struct tg_flow *flow)
{
	return (__u32)flow->port[0] << 16 | flow->port[1];
}

/* Whether a sealed label is that of this flow. */
static __always_inline int tg_is_of_flow(const struct tg_known_label *known,
					 const struct tg_flow *flow, const __u32 *other)
{
	return known->protocol == flow->protocol && known->ports == tg_ports_of(flow) &&
	       tg_same_address(known->other, other);
}

/* The sum of a label's bytes, as IPv4's checksum adds them up. */
static __always_inline __u32 tg_sum(const __u64 *bytes)
{
	__u64 sum = 0;

	TG_UNROLL
	for (__u32 word = 0; word < TG_KNOWN_BYTES / 8; word++)
		sum += (bytes[word] & 0xffffffff) + (bytes[word] >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum;
}

#endif
