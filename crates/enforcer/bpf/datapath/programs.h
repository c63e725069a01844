/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs that network devices run. `_ether` is for devices whose packets begin with an
 * Ethernet header, `_ip` for those without link header (tunnels, wg0).
 */
#ifndef TOLLGATE_DATAPATH_PROGRAMS_H
#define TOLLGATE_DATAPATH_PROGRAMS_H

#include "../libbpf.h"
#include "carried.h"
#include "check_egress.h"
#include "counters.h"
#include "decide.h"
#include "enforcer.h"
#include "flow.h"
#include "fragment.h"
#include "memory.h"
#include "read_label.h"
#include "room.h"
#include "sender.h"
#include "too_big.h"
#include "write_label.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT 2

/* What a program returns for a packet's fate. What is not dropped goes to the next program. */
static __always_inline int tg_end_packet(struct __sk_buff *skb, const struct tg_packet_room *room,
					 enum tg_fate fate)
{
	tg_count_packet(fate);
	if (fate < TG_DROPPED_NO_CONTEXT)
		return TC_ACT_UNSPEC;
	tg_tell_packet(skb, &room->flow, fate);
	return TC_ACT_SHOT;
}

/* Whether a packet has the label already: a device above this one has put it there. */
static __always_inline int tg_has_label(struct tg_packet_room *room,
					const struct tg_known_label *label)
{
	__u64 *bytes = (__u64 *)room->options.six.bytes;

	/* Which header is next, the label does not say. */
	if (room->flow.six)
		room->options.six.bytes[0] = 0;
	return room->flow.options == label->length && label->length <= TG_KNOWN_BYTES &&
	       tg_same_bytes(label->bytes, bytes);
}

/* What becomes of a packet for a zone with labels that has options: another label than its own is
 * forged. Of two hop-by-hop headers the second is an error. */
static __always_inline enum tg_fate tg_check_options(struct __sk_buff *skb, __u32 at,
						     struct tg_packet_room *room,
						     const struct tg_known_label *label)
{
	if (!tg_read_options(skb, at, room))
		return TG_DROPPED_MEMORY;
	if (tg_has_label(room, label))
		return TG_PACKET_LABELLED;
	if (tg_parse_label(room) != TG_PACKET_UNLABELLED)
		return TG_DROPPED_FORGED;
	return room->flow.six || room->flow.options + label->length > TG_IPV4_OPTIONS
		       ? TG_DROPPED_NO_ROOM
		       : TG_PACKET_PLAIN;
}

/* Whether a packet, which the kernel does not cut, fits a device with its label. */
static __always_inline int tg_fits(struct __sk_buff *skb, __u32 length)
{
	__u32 mtu = 0;

	return tg_is_segmented(skb) || !bpf_check_mtu(skb, 0, &mtu, length, 0);
}

/* Puts the label into a packet for a zone with labels. */
static __always_inline enum tg_fate tg_put_label(struct __sk_buff *skb, __u32 at,
						 struct tg_packet_room *room,
						 const struct tg_known_label *label)
{
	if (room->flow.options) {
		enum tg_fate fate = tg_check_options(skb, at, room, label);

		if (fate != TG_PACKET_PLAIN)
			return fate;
	}
	if (label->length > room->flow.room || !tg_fits(skb, label->length))
		return TG_DROPPED_NO_ROOM;
	int put = room->flow.six ? tg_insert6(skb, at, room, label) : tg_insert4(skb, at, label);

	return put ? TG_PACKET_LABELLED : TG_DROPPED_MEMORY;
}

/* Reads a packet whose network header is at `at`. 0: nothing is to be done with it, and `end` is
 * what the program returns. */
static __always_inline struct tg_packet_room *tg_begin_packet(struct __sk_buff *skb, __u32 at,
							      int *end)
{
	struct tg_packet_room *room = tg_find_room();

	*end = TC_ACT_SHOT;
	if (!room)
		return 0;
	enum tg_read read = tg_read_flow(skb, at, &room->flow);

	if (read == TG_READ_OTHER)
		*end = TC_ACT_UNSPEC;
	if (read == TG_READ_BAD)
		*end = tg_end_packet(skb, room, TG_DROPPED_MALFORMED);
	return read == TG_READ_OK ? room : 0;
}

/* A packet that leaves by a device whose network header is at `at`. */
static __always_inline int tg_egress(struct __sk_buff *skb, __u32 at)
{
	int end;
	struct tg_packet_room *room = tg_begin_packet(skb, at, &end);

	if (!room)
		return end;
	if (tg_is_icmp(&room->flow))
		tg_read_transport(skb, &room->flow);
	__u32 sid = tg_sender_sid(skb, &room->flow);

	/* What processes of the machine or the kernel say on a link. */
	if (tg_is_of_link(&room->flow) && (room->flow.answer || sid == TG_SID_MACHINE))
		return tg_end_packet(skb, room, TG_PACKET_PLAIN);
	/* A packet that is forwarded has the SID that it came with. UDP keeps its socket. */
	if (sid) {
		tg_carry(skb, sid);
		if (room->flow.protocol != IPPROTO_UDP && tg_is_from_outside(skb))
			tg_prove(skb, &room->flow, sid);
	} else if (tg_is_in_users(skb)) {
		sid = tg_proven(skb, &room->flow);
	} else {
		sid = tg_carried(skb);
		if (sid && tg_is_from_outside(skb))
			tg_prove(skb, &room->flow, sid);
	}
	if (!sid)
		sid = SECINITSID_UNLABELED;
	struct tg_known_label *label = tg_written_label(skb, room, sid);

	if (!label)
		return tg_end_packet(skb, room, TG_DROPPED_MEMORY);
	if (tg_check_egress(skb, room, label, sid))
		return tg_end_packet(skb, room, TG_DROPPED_EGRESS);
	if (label->fate != TG_PACKET_LABELLED)
		return tg_end_packet(skb, room, label->fate);
	return tg_end_packet(skb, room, tg_put_label(skb, at, room, label));
}

SEC("tc") int egress_ether(struct __sk_buff *skb)
{
	return tg_egress(skb, TG_ETHER_HEADER);
}

SEC("tc") int egress_ip(struct __sk_buff *skb)
{
	return tg_egress(skb, 0);
}

/* On the loopback device packets are not changed, but for "too big" of a tunnel of this machine. */
SEC("tc") int egress_loopback(struct __sk_buff *skb)
{
	__u32 sid = tg_connection_sid(skb);

	if (sid) {
		tg_carry(skb, sid);
		tg_count_packet(TG_PACKET_LOCAL);
		return TC_ACT_UNSPEC;
	}
	struct tg_packet_room *room = tg_find_room();

	if (!room)
		return TC_ACT_SHOT;
	if (tg_read_flow(skb, TG_ETHER_HEADER, &room->flow) != TG_READ_OK)
		return TC_ACT_UNSPEC;
	sid = tg_sender_sid(skb, &room->flow);
	if (sid)
		tg_carry(skb, sid);
	if (room->flow.protocol != IPPROTO_UDP) {
		tg_read_transport(skb, &room->flow);
		tg_put_question(&room->flow, sid);
		tg_correct_too_big(skb, &room->flow, room->flow.transport);
	}
	return tg_end_packet(skb, room, TG_PACKET_LOCAL);
}

/*
 * Whether a label is that of the socket that has sent the packet, where that is known: in another
 * network namespace of this machine. Whoever is root there may write any options.
 */
static __always_inline int tg_is_senders(__u32 label, __u32 sender)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	return generation &&
	       tg_context_of(generation, label).low == tg_context_of(generation, sender).low;
}

/* What becomes of a packet that came with this label, or without one. */
static __always_inline enum tg_fate tg_take_label(struct __sk_buff *skb, __u32 at,
						  struct tg_packet_room *room,
						  const struct tg_known_label *label)
{
	__u32 sid = label->sid, sender = tg_sender_sid(skb, &room->flow), carried = tg_carried(skb);

	if (!sender && carried && tg_is_from_outside(skb))
		sender = tg_proven(skb, &room->flow);
	/* Until it is known otherwise, a packet has no label. */
	tg_carry(skb, 0);
	if (label->fate == TG_PACKET_UNLABELLED || label->fate == TG_DROPPED_STRIPPED) {
		if (sender)
			carried = sender;
		else if (carried && !tg_is_stacked(skb))
			carried = 0;
		/* A device below this one has taken the label off. */
		if (carried) {
			tg_carry(skb, carried);
			return TG_PACKET_LOCAL;
		}
	}
	if (label->fate >= TG_DROPPED_NO_CONTEXT)
		return label->fate;
	/* A level that nobody has sealed, of a namespace whose root may write what he likes:
	 * without a socket it can be the kernel's answer. */
	if (label->fate == TG_PACKET_ACCEPTED && !label->sealed) {
		if (!sender && tg_is_from_outside(skb))
			sender = tg_answer_sid(&room->flow);
		if (sender && !tg_is_senders(sid, sender)) {
			/* The kernel's errors repeat the options of what they are about. */
			if (!tg_is_error(&room->flow))
				return TG_DROPPED_FORGED;
			sid = sender;
		}
	}
	if (!tg_is_of_packet(&room->flow, sid))
		return TG_DROPPED_FRAGMENT;
	tg_carry(skb, sid);
	if (label->fate == TG_PACKET_ACCEPTED && !tg_remove(skb, at, room, label))
		return TG_DROPPED_MEMORY;
	return label->fate;
}

/* A packet that comes by a device whose network header is at `at`. */
static __always_inline int tg_ingress(struct __sk_buff *skb, __u32 at)
{
	int end;
	struct tg_packet_room *room = tg_begin_packet(skb, at, &end);

	if (!room)
		return end;
	if (room->flow.protocol != IPPROTO_UDP)
		tg_read_transport(skb, &room->flow);
	struct tg_known_label *label = tg_read_label(skb, at, room);

	/* Its header is longer than the packet. */
	if (!label)
		return tg_end_packet(skb, room, TG_DROPPED_MALFORMED);
	enum tg_fate fate = tg_take_label(skb, at, room, label);

	/* The same namespace may pass it on. */
	if (fate < TG_DROPPED_NO_CONTEXT && tg_is_in_users(skb) && tg_carried(skb))
		tg_prove(skb, &room->flow, tg_carried(skb));
	if (fate < TG_DROPPED_NO_CONTEXT && room->flow.protocol != IPPROTO_UDP) {
		__u32 removed = fate == TG_PACKET_ACCEPTED && tg_is_alone(label, room->flow.six)
					? room->flow.options
					: 0;

		tg_put_question(&room->flow, tg_carried(skb));
		tg_correct_too_big(skb, &room->flow, room->flow.transport - removed);
	}
	return tg_end_packet(skb, room, fate);
}

SEC("tc") int ingress_ether(struct __sk_buff *skb)
{
	return tg_ingress(skb, TG_ETHER_HEADER);
}

/* A packet that IPsec has unpacked keeps the Ethernet header of the one around it. */
SEC("tc") int ingress_ip(struct __sk_buff *skb)
{
	__u16 link = 0;

	bpf_probe_read_kernel(&link, sizeof link,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, mac_len));
	return link == TG_ETHER_HEADER ? tg_ingress(skb, TG_ETHER_HEADER) : tg_ingress(skb, 0);
}

#endif
