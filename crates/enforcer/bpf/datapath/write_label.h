/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The label that a packet gets: the bytes for a sender's SID in a zone. */
#ifndef TOLLGATE_DATAPATH_WRITE_LABEL_H
#define TOLLGATE_DATAPATH_WRITE_LABEL_H

#include "../compiler.h"
#include "../contexts.h"
#include "../generation.h"
#include "../libbpf.h"
#include "../state.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"
#include "level.h"
#include "memory.h"
#include "seal.h"
#include "write.h"
#include "zone.h"

/* A label with the sender's level, in room->options. Returns its length; 0: it has no room. */
TG_FUNCTION __u32 tg_write_level(struct tg_packet_room *room, const struct tg_doi *doi,
				 const struct tg_level *level)
{
	if (!room || !doi || !level)
		return 0;
	tg_label_clear(&room->label);
	room->label.doi = doi->number;
	room->label.tag = doi->tag;
	if (!tg_level_out(doi, level, &room->label))
		return 0;
	return room->flow.six ? tg_calipso_write(&room->options.six, &room->label)
			      : tg_cipso_write(&room->options.four, &room->label);
}

/* A sealed label, likewise. */
TG_FUNCTION __u32 tg_write_sealed(struct tg_packet_room *room, const struct tg_datapath *datapath,
				  __u32 doi, __u32 identifier, __u64 window)
{
	if (!room || !datapath || !datapath->seal.keys || !identifier)
		return 0;
	const struct tg_seal *seal = &datapath->seal;

	/* The sum is taken over all of them. */
	__builtin_memset(room->options.six.bytes, 0, TG_KNOWN_BYTES);
	tg_label_clear(&room->label);
	room->label.tag = TG_TAG_SEALED;
	room->label.doi = doi;
	room->label.key = seal->number[0];
	room->label.node = seal->node;
	room->label.window = window;
	room->label.generation = seal->generation;
	room->label.context = identifier;
	room->label.mac = tg_seal_for(&room->flow, &room->label, seal, window, 0);
	return room->flow.six ? tg_sealed_write6(&room->options.six, &room->label)
			      : tg_sealed_write4(&room->options.four, &room->label);
}

/*
 * Computes the label of a SID for the packet in `room`, and keeps it in `known`. Returns what
 * becomes of the packet.
 */
TG_FUNCTION int tg_compute_written(struct tg_packet_room *room, struct tg_known_label *known,
				   __u32 sid, __u64 window)
{
	__u64 epoch = READ_ONCE(state.epoch);
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!room || !known || !generation)
		return TG_DROPPED_MEMORY;
	struct tg_zone *zone =
		tg_find_zone(&generation->datapath, room->flow.six, room->flow.destination);

	known->epoch = epoch;
	known->sid = sid;
	known->six = room->flow.six;
	known->sealed = 0;
	known->checked = 0;
	known->length = 0;
	known->fate = TG_PACKET_PLAIN;
	__builtin_memcpy(known->address, room->flow.destination, sizeof known->address);
	if (!zone || !zone->doi)
		return known->fate;
	struct tg_doi *doi = tg_doi_of(&generation->datapath, zone);
	struct tg_context context = tg_context_of(generation, sid);

	known->fate = context.type ? TG_DROPPED_NO_LEVEL : TG_DROPPED_NO_CONTEXT;
	if (!context.type)
		return known->fate;
	if (doi->tag == TG_TAG_SEALED) {
		known->sealed = 1;
		known->window = window;
		known->protocol = room->flow.protocol;
		known->ports = tg_ports_of(&room->flow);
		__builtin_memcpy(known->other, room->flow.source, sizeof known->other);
		known->length =
			tg_write_sealed(room, &generation->datapath, doi->number,
					generation->identifiers[sid & (TG_SIDS - 1)], window);
	} else {
		known->length =
			tg_write_level(room, doi, tg_level(&generation->levels, context.low));
	}
	if (!known->length)
		return known->fate;
	/* A longer one is in the room, for this packet alone. */
	if (known->length > TG_KNOWN_BYTES)
		known->epoch = 0;
	known->fate = TG_PACKET_LABELLED;
	__builtin_memcpy(known->bytes, room->options.six.bytes, sizeof known->bytes);
	known->sum = tg_sum(known->bytes);
	return known->fate;
}

/* The label of a SID for a packet: known, or computed. */
static __always_inline struct tg_known_label *
tg_written_label(struct __sk_buff *skb, struct tg_packet_room *room, __u32 sid)
{
	struct tg_flow *flow = &room->flow;
	const __u64 *destination = (const __u64 *)flow->destination;
	struct tg_known_label *known =
		tg_label_place(&written_labels, destination[0] ^ destination[1] ^ (__u64)sid << 20);

	if (!known)
		return 0;
	int same = known->sid == sid && known->six == flow->six &&
		   known->epoch == READ_ONCE(state.epoch) &&
		   tg_same_address(known->address, flow->destination);

	if (same && !known->sealed)
		return known;
	__u64 window = tg_window_now();

	tg_read_transport(skb, flow);
	if (!same || known->window != window || !tg_is_of_flow(known, flow, flow->source))
		tg_compute_written(room, known, sid, window);
	return known;
}

#endif
