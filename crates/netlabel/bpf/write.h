/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes labels as the only options of a packet: what crates/netlabel/src writes, byte for byte;
 * tests/headers.rs holds the two against one another. What is written is described there.
 *
 * The loops over categories have no branches but those of their bounds, so that the verifier does
 * not follow each category both ways.
 */
#ifndef TOLLGATE_NETLABEL_WRITE_H
#define TOLLGATE_NETLABEL_WRITE_H

#include "calipso.h"
#include "netlabel.h"

#define TG_CIPSO_HEAD 10u    /* option, domain, tag, alignment and sensitivity */
#define TG_CIPSO_ROOM 30u    /* bytes that a tag has for its categories */
#define TG_CIPSO_NUMBERS 15u /* categories, or ends of ranges, that have room */
#define TG_IPV6_WRITTEN 144u /* bytes of a header with TG_LABEL_CATEGORIES, at most */
#define TG_SEALED_OPTION (2 + TG_SEALED_BODY)

#define TG_LABEL_PUT(options, at, value)                                                           \
	((options)->bytes[(at) & (sizeof((options)->bytes) - 1)] = (__u8)(value))
#define TG_LABEL_PUT_16(options, at, value)                                                        \
	(TG_LABEL_PUT(options, at, (value) >> 8), TG_LABEL_PUT(options, (at) + 1, value))
#define TG_LABEL_PUT_32(options, at, value)                                                        \
	(TG_LABEL_PUT_16(options, at, (value) >> 16), TG_LABEL_PUT_16(options, (at) + 2, value))

/* Tag 1. Returns the bytes of the bitmap; above TG_CIPSO_ROOM: the categories have no room. */
TG_LABEL_FUNCTION __u32 tg_cipso_write_bitmap(struct tg_ipv4_options *out,
					      const struct tg_netlabel *label)
{
	__u64 high = 0;
	__u32 used = 0;

	if (!out || !label)
		return TG_CIPSO_ROOM + 1;
	for (__u32 word = TG_CIPSO_ROOM / 8; word < TG_LABEL_CATEGORIES / 64; word++)
		high |= word == TG_CIPSO_ROOM / 8 ? label->categories[word] >> 48
						  : label->categories[word];
	for (__u32 byte = 0; byte < TG_CIPSO_ROOM; byte++) {
		__u32 bits = label->categories[byte / 8] >> (byte % 8 * 8) & 0xff;

		TG_LABEL_PUT(out, TG_CIPSO_HEAD + byte, tg_label_reversed(bits));
		if (bits)
			used = byte + 1;
	}
	return high ? TG_CIPSO_ROOM + 1 : used;
}

/* Tag 2. Returns the bytes of the list, as above. */
TG_LABEL_FUNCTION __u32 tg_cipso_write_enumerated(struct tg_ipv4_options *out,
						  const struct tg_netlabel *label)
{
	__u32 count = 0;

	if (!out || !label)
		return TG_CIPSO_ROOM + 1;
	for (__u32 category = 0; category < TG_LABEL_CATEGORIES; category++) {
		__u32 present = label->categories[category / 64] >> (category & 63) & 1;

		/* The next one overwrites it, unless it is present. */
		TG_LABEL_PUT_16(out, TG_CIPSO_HEAD + 2 * count, category);
		count += present;
		count &= 2047;
	}
	/* What is not overwritten by another is none. */
	TG_LABEL_PUT_16(out, TG_CIPSO_HEAD + 2 * count, 0);
	return 2 * count;
}

/* Tag 5: ends of ranges, descending; a lower end of 0 at last is left out. Returns the bytes of the
 * list, as above. */
TG_LABEL_FUNCTION __u32 tg_cipso_write_ranges(struct tg_ipv4_options *out,
					      const struct tg_netlabel *label)
{
	__u32 count = 0, inside = 0;

	if (!out || !label)
		return TG_CIPSO_ROOM + 1;
	for (__u32 place = 0; place < TG_LABEL_CATEGORIES; place++) {
		__u32 category = TG_LABEL_CATEGORIES - 1 - place;
		__u32 present = label->categories[category / 64] >> (category & 63) & 1;

		/* The lower end of a range is the category before. */
		TG_LABEL_PUT_16(out, TG_CIPSO_HEAD + 2 * count, category + inside);
		count += present ^ inside;
		count &= 2047;
		inside = present;
	}
	/* What is not overwritten by another is none. */
	TG_LABEL_PUT_16(out, TG_CIPSO_HEAD + 2 * count, 0);
	return 2 * count;
}

/* A CIPSO option with `label->tag` (1, 2 or 5), domain, sensitivity and categories. Returns the
 * length of all options, whole words; 0: the categories have no room in this tag. */
TG_LABEL_FUNCTION __u32 tg_cipso_write(struct tg_ipv4_options *out, const struct tg_netlabel *label)
{
	__u32 list, size;

	if (!out || !label)
		return 0;
	for (__u32 byte = 0; byte < TG_IPV4_BUFFER; byte++)
		out->bytes[byte] = 0;
	switch (label->tag) {
	case TG_TAG_BITMAP:
		list = tg_cipso_write_bitmap(out, label);
		break;
	case TG_TAG_ENUMERATED:
		list = tg_cipso_write_enumerated(out, label);
		break;
	case TG_TAG_RANGES:
		list = tg_cipso_write_ranges(out, label);
		break;
	default:
		return 0;
	}
	if (list > TG_CIPSO_ROOM)
		return 0;
	size = TG_CIPSO_HEAD + list;
	/* A bitmap is filled with zeros, so that few lengths occur. */
	if (label->tag == TG_TAG_BITMAP)
		size = (size + 3) & ~3u;
	TG_LABEL_PUT(out, 0, TG_OPTION_CIPSO);
	TG_LABEL_PUT(out, 1, size);
	TG_LABEL_PUT_32(out, 2, label->doi);
	TG_LABEL_PUT(out, 6, label->tag);
	TG_LABEL_PUT(out, 7, size - 6);
	TG_LABEL_PUT(out, 8, 0);
	TG_LABEL_PUT(out, 9, label->sensitivity);
	return (size + 3) & ~3u;
}

/* The bitmap of a CALIPSO option. Returns its length in words of 32 bits. */
TG_LABEL_FUNCTION __u32 tg_calipso_write_bitmap(struct tg_ipv6_options *out,
						const struct tg_netlabel *label)
{
	__u32 used = 0;

	if (!out || !label)
		return 0;
	for (__u32 byte = 0; byte < TG_LABEL_CATEGORIES / 8; byte++) {
		__u32 bits = label->categories[byte / 8] >> (byte % 8 * 8) & 0xff;

		TG_LABEL_PUT(out, 2 + TG_CALIPSO_HEAD + byte, tg_label_reversed(bits));
		if (bits)
			used = byte / 4 + 1;
	}
	return used;
}

/* Ends a hop-by-hop header whose option ends at `used`, with padding. Returns its length. */
TG_LABEL_FUNCTION __u32 tg_ipv6_end(struct tg_ipv6_options *out, __u32 used)
{
	__u32 length = (used + 7) & ~7u, padding = length - used;

	if (!out || used > TG_IPV6_WRITTEN)
		return 0;
	for (__u32 byte = 0; byte < TG_IPV6_PADDING; byte++)
		TG_LABEL_PUT(out, used + byte, 0);
	if (padding > 1) {
		TG_LABEL_PUT(out, used, 1);
		TG_LABEL_PUT(out, used + 1, padding - 2);
	}
	TG_LABEL_PUT(out, 0, 0);
	TG_LABEL_PUT(out, 1, length / 8 - 1);
	return length;
}

/* A hop-by-hop header with a CALIPSO option of `label`'s domain, sensitivity and categories. Its
 * first byte, the next header, is 0. Returns its length. */
TG_LABEL_FUNCTION __u32 tg_calipso_write(struct tg_ipv6_options *out,
					 const struct tg_netlabel *label)
{
	__u32 words, size, checksum;

	if (!out || !label)
		return 0;
	words = tg_calipso_write_bitmap(out, label);
	if (words > TG_LABEL_CATEGORIES / 32)
		return 0;
	size = TG_CALIPSO_HEAD + 4 * words;
	TG_LABEL_PUT(out, 2, TG_OPTION_CALIPSO);
	TG_LABEL_PUT(out, 3, size - 2);
	TG_LABEL_PUT_32(out, 4, label->doi);
	TG_LABEL_PUT(out, 8, words);
	TG_LABEL_PUT(out, 9, label->sensitivity);
	checksum = tg_calipso_checksum(out, 2, size);
	TG_LABEL_PUT(out, 10, checksum);
	TG_LABEL_PUT(out, 11, checksum >> 8);
	return tg_ipv6_end(out, 2 + size);
}

/* The body of a sealed label, with `label`'s key, window, node, generation, context and MAC. */
TG_LABEL_INLINE void tg_sealed_body(__u8 *bytes, const struct tg_netlabel *label)
{
	bytes[0] = TG_SEALED_VERSION;
	bytes[1] = (__u8)label->key;
	bytes[2] = (__u8)(label->window >> 8);
	bytes[3] = (__u8)label->window;
	bytes[4] = (__u8)(label->node >> 8);
	bytes[5] = (__u8)label->node;
	bytes[6] = (__u8)(label->generation >> 8);
	bytes[7] = (__u8)label->generation;
	for (__u32 byte = 0; byte < 4; byte++)
		bytes[8 + byte] = (__u8)(label->context >> (24 - 8 * byte));
	for (__u32 byte = 0; byte < 8; byte++)
		bytes[12 + byte] = (__u8)(label->mac >> (8 * byte));
}

/* A sealed label as an experimental option of IPv4. Returns the length of all options. */
TG_LABEL_INLINE __u32 tg_sealed_write4(struct tg_ipv4_options *out, const struct tg_netlabel *label)
{
	out->bytes[0] = TG_OPTION_IPV4_EXPERIMENT;
	out->bytes[1] = TG_SEALED_OPTION;
	tg_sealed_body(out->bytes + 2, label);
	out->bytes[TG_SEALED_OPTION] = out->bytes[TG_SEALED_OPTION + 1] = 0;
	return TG_SEALED_OPTION + 2;
}

/* Likewise as the only option of a hop-by-hop header, which has the same length. */
TG_LABEL_INLINE __u32 tg_sealed_write6(struct tg_ipv6_options *out, const struct tg_netlabel *label)
{
	out->bytes[0] = 0;
	out->bytes[1] = (2 + TG_SEALED_OPTION) / 8 - 1;
	out->bytes[2] = TG_OPTION_IPV6_EXPERIMENT;
	out->bytes[3] = TG_SEALED_BODY;
	tg_sealed_body(out->bytes + 4, label);
	return 2 + TG_SEALED_OPTION;
}

#endif
