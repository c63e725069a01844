/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The label that a packet brought: the SID that it stands for. */
#ifndef TOLLGATE_DATAPATH_READ_LABEL_H
#define TOLLGATE_DATAPATH_READ_LABEL_H

#include "../compiler.h"
#include "../contexts.h"
#include "../generation.h"
#include "../level_number.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../state.h"
#include "ask_context.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"
#include "level.h"
#include "memory.h"
#include "seal.h"
#include "zone.h"

/* Whether another context may get a SID because of a packet from this zone. Counts it. */
static __always_inline int tg_may_bring(struct tg_zone *zone)
{
	if (READ_ONCE(zone->labels) >= TG_LABELS_OF_ZONE ||
	    READ_ONCE(state.packet_labels) >= TG_LABELS_OF_PACKETS)
		return 0;
	/* Several processors may each bring one more. */
	__sync_fetch_and_add(&zone->labels, 1);
	__sync_fetch_and_add(&state.packet_labels, 1);
	return 1;
}

/* Whether a level is within what a zone's packets may claim. */
static __always_inline int tg_may_claim(const struct tg_generation *generation,
					const struct tg_zone *zone, const struct tg_level *level)
{
	if (!(zone->flags & TG_ZONE_LIMITED))
		return 1;
	return tg_relation(level, tg_level(&generation->levels, zone->low)) >> TG_DOM & 1 &&
	       tg_relation(tg_level(&generation->levels, zone->high), level) >> TG_DOM & 1;
}

/*
 * security_netlbl_secattr_to_sid: the SID of the context of SECINITSID_NETMSG with a level. Returns
 * enum tg_fate.
 */
TG_FUNCTION int tg_level_sid(struct tg_generation *generation, struct tg_zone *zone,
			     const struct tg_level *level, __u32 *sid)
{
	if (!generation || !zone || !level || !sid)
		return TG_DROPPED_MEMORY;
	struct tg_context context = tg_context_of(generation, SECINITSID_NETMSG);
	struct tg_sid_key key = {.generation = generation->number};
	__u32 *known, number;

	if (!tg_may_claim(generation, zone, level))
		return TG_DROPPED_RANGE;
	if (!context.type ||
	    !tg_valid(&generation->tables, &generation->levels, &context, level, level))
		return TG_DROPPED_UNMAPPED;
	number = tg_find_level(generation, level);
	context.low = context.high = number;
	key.context = context;
	known = number == TG_NO_LEVEL ? 0 : bpf_map_lookup_elem(&sids, &key);
	if (known) {
		*sid = *known;
		return TG_PACKET_ACCEPTED;
	}
	if (!tg_may_bring(zone))
		return TG_DROPPED_FULL;
	number = tg_level_number(generation, level);
	context.low = context.high = number;
	if (number == TG_NO_LEVEL || tg_intern(generation, &context, sid))
		return TG_DROPPED_FULL;
	return TG_PACKET_ACCEPTED;
}

/* The SID behind a sealed label that is valid. */
static __always_inline int tg_identified_sid(const struct tg_generation *generation,
					     const struct tg_zone *zone,
					     const struct tg_packet_room *room, __u32 *sid)
{
	const struct tg_netlabel *label = &room->label;
	struct tg_identifier_key key = {generation->number, label->context};
	__u32 *found = bpf_map_lookup_elem(&identified, &key);

	if (!found) {
		tg_ask_context(&room->flow, label);
		return TG_DROPPED_IDENTIFIER;
	}
	*sid = *found;
	struct tg_context context = tg_context_of((struct tg_generation *)generation, *sid);

	return tg_may_claim(generation, zone, tg_level(&generation->levels, context.low)) &&
			       tg_may_claim(generation, zone,
					    tg_level(&generation->levels, context.high))
		       ? TG_PACKET_ACCEPTED
		       : TG_DROPPED_RANGE;
}

/* The SID of the label in room->label, which came from a zone with labels. */
TG_FUNCTION int tg_label_sid(struct tg_packet_room *room, struct tg_generation *generation,
			     struct tg_zone *zone, __u64 now, __u32 *sid)
{
	if (!room || !generation || !zone || !sid)
		return TG_DROPPED_MEMORY;
	struct tg_doi *doi = tg_doi_of(&generation->datapath, zone);
	struct tg_netlabel *label = &room->label;
	int refused;

	if ((doi->tag == TG_TAG_SEALED) != (label->tag == TG_TAG_SEALED))
		return TG_DROPPED_DOI;
	if (label->tag == TG_TAG_SEALED) {
		/* An experimental option names no domain: it is the zone's. */
		if (label->doi && label->doi != doi->number)
			return TG_DROPPED_DOI;
		label->doi = doi->number;
		refused = tg_unseal(&room->flow, label, &generation->datapath.seal, now);
		return refused ? refused : tg_identified_sid(generation, zone, room, sid);
	}
	/* The kernel's own tags are of its own SIDs, and DSM's of another cluster. */
	if (label->doi != doi->number || label->tag == TG_TAG_LOCAL || label->tag == TG_TAG_DSM)
		return TG_DROPPED_DOI;
	if (!tg_level_in(doi, label, &room->level))
		return TG_DROPPED_UNMAPPED;
	return tg_level_sid(generation, zone, &room->level, sid);
}

/* The SID of a packet without label; it may be that of a zone, by the source. */
static __always_inline int tg_unlabelled_sid(const struct tg_packet_room *room,
					     const struct tg_zone *zone, __u32 *sid)
{
	*sid = zone ? zone->unlabelled : 0;
	/* Routers that know nothing of labels send errors, too, and sockets see none of them. */
	if (zone && zone->flags & TG_ZONE_REQUIRED && !tg_is_error(&room->flow) &&
	    !tg_is_of_link(&room->flow))
		return TG_DROPPED_STRIPPED;
	return TG_PACKET_UNLABELLED;
}

/* Reads the options in `room`. Returns enum tg_fate: TG_PACKET_ACCEPTED if there is a label. */
static __always_inline int tg_parse_label(struct tg_packet_room *room)
{
	__u32 length = room->flow.options;
	int error = room->flow.six ? tg_ipv6_label(&room->options.six, length, &room->label)
				   : tg_ipv4_label(&room->options.four, length, &room->label);

	if (error)
		return error == TG_LABEL_HIGH_CATEGORY ? TG_DROPPED_UNMAPPED : TG_DROPPED_MALFORMED;
	return room->label.option ? TG_PACKET_ACCEPTED : TG_PACKET_UNLABELLED;
}

/* Enters what a sealed label is valid for. */
static __always_inline void tg_keep_flow(const struct tg_packet_room *room,
					 struct tg_known_label *known, __u64 now)
{
	known->sealed = 1;
	known->window = now;
	known->protocol = room->flow.protocol;
	known->ports = tg_ports_of(&room->flow);
	__builtin_memcpy(known->other, room->flow.destination, sizeof known->other);
}

/* What becomes of the packet in `room`, which comes from a zone, and its SID. */
static __always_inline int tg_judge(struct tg_packet_room *room, struct tg_generation *generation,
				    struct tg_zone *zone, __u64 now, __u32 *sid)
{
	/* Where no labels are known, those that come say nothing. */
	int fate = zone->doi && room->flow.options ? tg_parse_label(room) : TG_PACKET_UNLABELLED;

	if (fate == TG_PACKET_UNLABELLED)
		return tg_unlabelled_sid(room, zone, sid);
	return fate == TG_PACKET_ACCEPTED ? tg_label_sid(room, generation, zone, now, sid) : fate;
}

/* Computes what becomes of the packet in `room`, and keeps it in `known`. */
TG_FUNCTION int tg_compute_read(struct tg_packet_room *room, struct tg_known_label *known,
				__u64 now)
{
	__u64 epoch = READ_ONCE(state.epoch);
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u32 sid = 0;
	int fate = TG_PACKET_UNLABELLED;

	if (!room || !known || !generation)
		return TG_DROPPED_MEMORY;
	struct tg_zone *zone =
		tg_find_zone(&generation->datapath, room->flow.six, room->flow.source);

	room->label.option = room->label.tag = 0;
	if (zone)
		fate = tg_judge(room, generation, zone, now, &sid);
	known->epoch = epoch;
	known->six = room->flow.six;
	known->sealed = 0;
	known->length = room->flow.options;
	known->begin = room->label.at;
	known->end = room->label.at + room->label.length;
	known->sid = sid;
	__builtin_memcpy(known->address, room->flow.source, sizeof known->address);
	__builtin_memcpy(known->bytes, room->options.six.bytes, sizeof known->bytes);
	if (room->label.tag == TG_TAG_SEALED)
		tg_keep_flow(room, known, now);
	/* The daemon may learn a context, and room may be made. What an error of ICMP may do, other
	 * packets may not. What is longer than `bytes` is not compared. */
	if (fate == TG_DROPPED_IDENTIFIER || fate == TG_DROPPED_FULL ||
	    room->flow.options > TG_KNOWN_BYTES || tg_is_special(&room->flow))
		known->epoch = 0;
	return known->fate = fate;
}

/* Reads the options of a packet. Returns whether there were none, or they could be read. */
static __always_inline int tg_read_options(struct __sk_buff *skb, __u32 at,
					   struct tg_packet_room *room)
{
	__u32 length = room->flow.options;
	__u64 *words = (__u64 *)room->options.six.bytes;

	TG_UNROLL
	for (__u32 word = 0; word < TG_KNOWN_BYTES / 8; word++)
		words[word] = 0;
	if (!length)
		return 1;
	at += room->flow.six ? TG_IPV6_HEADER : TG_IPV4_HEADER;
	/* A longer header is refused by the reader, by its length. */
	if (length > TG_IPV6_BUFFER)
		length = TG_IPV6_BUFFER;
	return !bpf_skb_load_bytes(skb, at, room->options.six.bytes, tg_buffer_length(length));
}

static __always_inline int tg_same_bytes(const __u64 *known, const __u64 *bytes)
{
	__u64 differ = 0;

	TG_UNROLL
	for (__u32 word = 0; word < TG_KNOWN_BYTES / 8; word++)
		differ |= known[word] ^ bytes[word];
	return !differ;
}

/* What becomes of a packet, and its SID: known, or computed. 0: its options cannot be read. */
static __always_inline struct tg_known_label *tg_read_label(struct __sk_buff *skb, __u32 at,
							    struct tg_packet_room *room)
{
	struct tg_flow *flow = &room->flow;
	const __u64 *source = (const __u64 *)flow->source;
	const __u64 *bytes = (const __u64 *)room->options.six.bytes;

	if (!tg_read_options(skb, at, room))
		return 0;
	struct tg_known_label *known = tg_label_place(
		&read_labels, source[0] ^ source[1] ^ bytes[0] ^ bytes[1] ^ bytes[2]);

	if (!known)
		return 0;
	int same = known->epoch == READ_ONCE(state.epoch) && known->six == flow->six &&
		   known->length == flow->options &&
		   tg_same_address(known->address, flow->source) &&
		   tg_same_bytes(known->bytes, bytes);

	if (same && !known->sealed && !tg_is_special(flow))
		return known;
	__u64 now = tg_window_now();

	tg_read_transport(skb, flow);
	/* Within a window a label stays valid. */
	if (!same || tg_is_special(flow) || known->window != now ||
	    !tg_is_of_flow(known, flow, flow->destination))
		tg_compute_read(room, known, now);
	return known;
}

#endif
