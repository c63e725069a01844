/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels in hop-by-hop options of IPv6: CALIPSO (RFC 5570) and Tollgate's own. The formats are
 * described in crates/netlabel/src/calipso.rs and sealed.rs.
 */
#ifndef TOLLGATE_CALIPSO_H
#define TOLLGATE_CALIPSO_H

#include "netlabel.h"

#define TG_CALIPSO_HEAD 10u  /* bytes before the bitmap, with type and length */
#define TG_CALIPSO_WORDS 61u /* of 32 bits, at most */
#define TG_IPV6_PADDING 7u   /* bytes in a row, at most */

/* A padding option of `size` bytes: its data must be 0. Only the first bytes are looked at; more
 * is too much padding anyway. */
TG_LABEL_FUNCTION int tg_ipv6_padding(const struct tg_ipv6_options *options, __u32 at, __u32 size)
{
	__u32 found = 0;

	if (!options)
		return TG_LABEL_TRUNCATED;
	for (__u32 byte = 2; byte < TG_IPV6_PADDING; byte++)
		if (byte < size)
			found |= TG_LABEL_AT(options, at + byte);
	return found ? TG_LABEL_PADDING : TG_LABEL_OK;
}

/* One option of a header of `length` bytes, at `at`, after `padding` bytes of padding in a row.
 * Returns where the next one is, and above 16 bits the padding so far; or an error, negated. A
 * function of its own, so that the verifier does not multiply its branches by the caller's loop. */
TG_LABEL_FUNCTION int tg_ipv6_step(const struct tg_ipv6_options *options, __u32 length, __u32 at,
				   __u32 padding, struct tg_netlabel *label)
{
	__u32 kind, size = 1;

	if (!options || !label || at >= length)
		return -TG_LABEL_TRUNCATED;
	kind = TG_LABEL_AT(options, at);
	if (kind && length - at < 2)
		return -TG_LABEL_TRUNCATED;
	if (kind)
		size = TG_LABEL_AT(options, at + 1) + 2;
	if (size > length - at)
		return -TG_LABEL_TRUNCATED;
	padding = kind <= 1 ? padding + size : 0;
	if (padding > TG_IPV6_PADDING)
		return -TG_LABEL_TOO_MUCH_PADDING;
	if (kind == 1 && tg_ipv6_padding(options, at, size))
		return -TG_LABEL_PADDING;
	if (kind == TG_OPTION_CALIPSO || kind == TG_OPTION_IPV6_EXPERIMENT) {
		if (label->option)
			return -TG_LABEL_SECOND_LABEL;
		label->option = kind;
		label->at = at;
		label->length = size;
	}
	return (int)(at + size) | (int)padding << 16;
}

/* The option with the label, in a hop-by-hop header of `length` bytes; ip6_parse_tlv. */
TG_LABEL_FUNCTION int tg_ipv6_find(const struct tg_ipv6_options *options, __u32 length,
				   struct tg_netlabel *label)
{
	__u32 at = 2, padding = 0;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	for (__u32 step = 0; step < TG_IPV6_BUFFER; step++) {
		if (at >= length)
			break;
		int next = tg_ipv6_step(options, length, at, padding, label);

		if (next < 0)
			return -next;
		at = (__u32)next & 0xffff;
		padding = (__u32)next >> 16;
	}
	return TG_LABEL_OK;
}

/* The CRC-16 of RFC 1662 over an option of `size` bytes, its own two taken as 0. It needs no table:
 * a byte's eight steps are done at once. */
TG_LABEL_FUNCTION __u32 tg_calipso_checksum(const struct tg_ipv6_options *options, __u32 at,
					    __u32 size)
{
	__u32 crc = 0xffff, byte, mixed;

	if (!options)
		return 0;
	for (__u32 place = 0; place < TG_IPV6_BUFFER; place++) {
		if (place >= size)
			break;
		byte = place == 8 || place == 9 ? 0 : TG_LABEL_AT(options, at + place);
		mixed = (byte ^ crc) & 0xff;
		mixed ^= mixed << 4 & 0xff;
		crc = crc >> 8 ^ mixed << 8 ^ mixed << 3 ^ mixed >> 4;
	}
	return ~crc & 0xffff;
}

/* The bitmap of `size` bytes; calipso_map_cat_ntoh. */
TG_LABEL_FUNCTION int tg_calipso_bitmap(const struct tg_ipv6_options *options, __u32 at, __u32 size,
					struct tg_netlabel *label)
{
	__u32 high = 0;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	for (__u32 byte = 0; byte < TG_CALIPSO_WORDS * 4; byte++) {
		if (byte >= size)
			break;
		__u32 bits = TG_LABEL_AT(options, at + byte);

		if (byte < TG_LABEL_CATEGORIES / 8)
			label->categories[byte / 8] |= tg_label_reversed(bits) << (byte % 8 * 8);
		else
			high |= bits;
	}
	return high ? TG_LABEL_HIGH_CATEGORY : TG_LABEL_OK;
}

/* The CALIPSO option that was found; ipv6_hop_calipso and calipso_validate. */
TG_LABEL_FUNCTION int tg_calipso_read(const struct tg_ipv6_options *options,
				      struct tg_netlabel *label)
{
	__u32 at, size;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	at = label->at;
	size = label->length;
	if (size < TG_CALIPSO_HEAD)
		return TG_LABEL_OPTION_LENGTH;
	if (TG_LABEL_AT(options, at + 6) * 4 != size - TG_CALIPSO_HEAD)
		return TG_LABEL_COMPARTMENTS;
	if ((TG_LABEL_AT(options, at + 8) | TG_LABEL_AT(options, at + 9) << 8) !=
	    tg_calipso_checksum(options, at, size))
		return TG_LABEL_CHECKSUM;
	label->doi = TG_LABEL_32(options, at + 2);
	if (!label->doi)
		return TG_LABEL_RESERVED_DOI;
	label->sensitivity = TG_LABEL_AT(options, at + 7);
	return tg_calipso_bitmap(options, at + TG_CALIPSO_HEAD, size - TG_CALIPSO_HEAD, label);
}

/* The label in a hop-by-hop header of `length` bytes, of which TG_IPV6_BUFFER at most are in the
 * buffer. label->option is 0 if there is none. Returns enum tg_label_error. */
TG_LABEL_FUNCTION int tg_ipv6_label(const struct tg_ipv6_options *options, __u32 length,
				    struct tg_netlabel *label)
{
	__u32 whole;
	int error;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	tg_label_clear(label);
	whole = (TG_LABEL_AT(options, 1) + 1) * 8;
	if (length < 2 || length < whole)
		return TG_LABEL_TRUNCATED;
	if (length > whole)
		return TG_LABEL_TOO_LONG;
	if (length > TG_IPV6_BUFFER)
		return TG_LABEL_LONG_HEADER;
	error = tg_ipv6_find(options, length, label);
	if (error || !label->option)
		return error;
	if (label->option == TG_OPTION_CALIPSO)
		return tg_calipso_read(options, label);
	if (label->length != 2 + TG_SEALED_BODY)
		return TG_LABEL_OPTION_LENGTH;
	return tg_sealed_read(options->bytes, TG_IPV6_BUFFER - 1, label->at + 2, label);
}

#endif
