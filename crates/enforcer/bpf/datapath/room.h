/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Puts labels into headers, and takes them out. */
#ifndef TOLLGATE_DATAPATH_ROOM_H
#define TOLLGATE_DATAPATH_ROOM_H

#include <bpf/bpf_endian.h>

#include "../compiler.h"
#include "../ip.h"
#include "../libbpf.h"
#include "datapath.h"
#include "decide.h"
#include "flow.h"
#include "memory.h"
#include "write.h"
#include "zone.h"

/* Whether the kernel or a device cuts a packet into segments (skb_is_gso). How many, it may have
 * forgotten since room was made. */
static __always_inline int tg_is_segmented(struct __sk_buff *skb)
{
	return skb->gso_size != 0;
}

/* Segments are cut as before: routes leave room for the label. */
static __always_inline __u64 tg_room_flags(struct __sk_buff *skb)
{
	return tg_is_segmented(skb) ? BPF_F_ADJ_ROOM_FIXED_GSO : 0;
}

/* The checksum of IPv4 for the sum of all other words. */
static __always_inline __u16 tg_folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Changes lengths of an IPv4 header by the words of options that came (`sum` is theirs) or went (it
 * is that of their complements). */
static __always_inline void tg_change_header(struct tg_ipv4 *ip, __s32 words, __u64 sum)
{
	__u16 length = bpf_htons(bpf_ntohs(ip->length) + words * 4);
	__u8 version = ip->version + words;

	sum += (__u16)~ip->sum;
	sum += (__u16)~ip->length + length;
	sum += (__u16) ~(__u16)ip->version + version;
	ip->sum = tg_folded(sum);
	ip->length = length;
	ip->version = version;
}

/* Puts a label before other options of IPv4. Returns whether that was possible. */
static __always_inline int tg_insert4(struct __sk_buff *skb, __u32 at,
				      const struct tg_known_label *label)
{
	__u32 length = label->length;

	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_NET, tg_room_flags(skb)))
		return 0;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv4 *ip = data + at;
	__u32 *word = (void *)(ip + 1);
	const __u32 *bytes = (const __u32 *)label->bytes;

	if ((void *)(ip + 1) > end)
		return 0;
	TG_UNROLL
	for (__u32 index = 0; index < TG_KNOWN_BYTES / 4; index++) {
		if (index * 4 < length && (void *)(word + index + 1) <= end)
			word[index] = bytes[index];
	}
	tg_change_header(ip, length / 4, label->sum);
	return 1;
}

/* Puts a hop-by-hop header with the label, which is in the room if it is long, before others of
 * IPv6. */
static __always_inline int tg_insert6(struct __sk_buff *skb, __u32 at, struct tg_packet_room *room,
				      const struct tg_known_label *label)
{
	__u32 length = label->length;

	if (length <= TG_KNOWN_BYTES)
		__builtin_memcpy(room->options.six.bytes, label->bytes, TG_KNOWN_BYTES);
	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_NET, tg_room_flags(skb)))
		return 0;
	length = tg_buffer_length(length);
	if (bpf_skb_store_bytes(skb, at + TG_IPV6_HEADER, room->options.six.bytes, length, 0))
		return 0;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv6 *ip = data + at;
	__u8 *header = (void *)(ip + 1);

	if ((void *)(header + 1) > end)
		return 0;
	*header = ip->next;
	ip->next = TG_HOP_BY_HOP;
	ip->length = bpf_htons(bpf_ntohs(ip->length) + length);
	return 1;
}

/* Takes all options out of an IPv4 header. */
static __always_inline int tg_remove4(struct __sk_buff *skb, __u32 at, __u32 length,
				      const __u64 *bytes)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv4 *ip = data + at;
	__u64 sum = 0;

	if ((void *)(ip + 1) > end)
		return 0;
	/* The complement of a word of 0 adds nothing: 0xffff is 0, too. */
	TG_UNROLL
	for (__u32 word = 0; word < TG_KNOWN_BYTES / 8; word++) {
		__u64 gone = ~bytes[word];

		sum += (gone & 0xffffffff) + (gone >> 32);
	}
	tg_change_header(ip, -(__s32)(length / 4), sum);
	/* A device's sum of the whole packet loses the options twice: as bytes that go, and because
	 * the header's own sum makes up for them. */
	bpf_csum_update(skb, tg_sum(bytes));
	return !bpf_skb_adjust_room(skb, -(__s32)length, BPF_ADJ_ROOM_NET,
				    tg_room_flags(skb) | BPF_F_ADJ_ROOM_NO_CSUM_RESET);
}

/* Takes the hop-by-hop header out. */
static __always_inline int tg_remove6(struct __sk_buff *skb, __u32 at, __u32 length)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tg_ipv6 *ip = data + at;
	__u8 *header = (void *)(ip + 1);

	if ((void *)(header + 1) > end)
		return 0;
	__be32 before = *(__be32 *)&ip->length, after;

	ip->next = *header;
	ip->length = bpf_htons(bpf_ntohs(ip->length) - length);
	after = *(__be32 *)&ip->length;
	bpf_csum_update(skb, bpf_csum_diff(&before, sizeof before, &after, sizeof after, 0));
	return !bpf_skb_adjust_room(skb, -(__s32)length, BPF_ADJ_ROOM_NET,
				    tg_room_flags(skb) | BPF_F_ADJ_ROOM_NO_CSUM_RESET);
}

/* Sets bytes `begin` to `end` of options. Without a branch, which the verifier would follow both
 * ways for each byte. */
TG_FUNCTION int tg_set_bytes(struct tg_ipv6_options *options, __u32 begin, __u32 end, __u32 value)
{
	if (!options)
		return 0;
	TG_ROLL
	for (__u32 byte = 0; byte < TG_IPV6_BUFFER; byte++) {
		__u8 kept = (__u8)(tg_below(byte, begin) | ~tg_below(byte, end)) & 1;

		kept = -kept;
		options->bytes[byte] = (options->bytes[byte] & kept) | (value & (__u8)~kept);
	}
	return 1;
}

/* Overwrites a label between other options: with no-operations in IPv4, in IPv6 with an option that
 * nobody knows, since more than 7 bytes of padding are refused. */
static __always_inline int tg_blank(struct __sk_buff *skb, __u32 at, struct tg_packet_room *room,
				    const struct tg_known_label *label)
{
	__u32 six = room->flow.six, begin = label->begin, end = label->end;
	__u32 length = room->flow.options;
	struct tg_ipv6_options *options = &room->options.six;
	__s64 difference;

	tg_set_bytes(options, six ? begin + 2 : begin, end, !six);
	length = tg_buffer_length(length);
	if (six) {
		options->bytes[begin & (TG_IPV6_BUFFER - 1)] = TG_OPTION_IPV6_EXPERIMENT;
		return !bpf_skb_store_bytes(skb, at + TG_IPV6_HEADER, options->bytes, length, 0);
	}
	if (length > TG_IPV4_OPTIONS)
		return 0;
	difference = bpf_csum_diff((__be32 *)label->bytes, TG_IPV4_OPTIONS,
				   (__be32 *)options->bytes, TG_IPV4_OPTIONS, 0);
	return !bpf_skb_store_bytes(skb, at + TG_IPV4_HEADER, options->bytes, length, 0) &&
	       !bpf_l3_csum_replace(skb, at + 10, 0, difference, 0);
}

/* Whether the label is all that the options hold. */
static __always_inline int tg_is_alone(const struct tg_known_label *label, __u32 six)
{
	return six ? label->begin == 2 && ((label->end + 7) & ~7u) == label->length
		   : !label->begin && ((label->end + 3) & ~3u) == label->length;
}

/* Takes the label out of a packet. Returns whether that was possible. */
static __always_inline int tg_remove(struct __sk_buff *skb, __u32 at, struct tg_packet_room *room,
				     const struct tg_known_label *label)
{
	if (!tg_is_alone(label, room->flow.six))
		return tg_blank(skb, at, room, label);
	return room->flow.six ? tg_remove6(skb, at, label->length)
			      : tg_remove4(skb, at, label->length, label->bytes);
}

#endif
