/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels in the options of IPv4 packets, for BPF programs and the host: CIPSO's tags 1, 2, 5 and
 * 128, DSM's tag 7, and Tollgate's own label; calipso.h has those of IPv6, sealed.h the MAC. They
 * take and refuse what crates/netlabel/src takes and refuses, for the same reasons. The formats are
 * described there, and crates/netlabel/tests/headers.rs holds the two against one another. They use
 * neither maps nor helpers, and nothing but <linux/types.h>.
 *
 * The caller copies a packet's options into a buffer of fixed size (bpf_skb_load_bytes). Every
 * access is masked to that size, and every loop has a constant bound. In BPF each
 * TG_LABEL_FUNCTION is a global function, which the verifier examines once; that is why they test
 * their pointers.
 */
#ifndef TOLLGATE_NETLABEL_H
#define TOLLGATE_NETLABEL_H

#include <linux/types.h>

#ifdef __bpf__
#define TG_LABEL_FUNCTION __attribute__((noinline))
#define TG_LABEL_INLINE static inline __attribute__((always_inline))
#else
#define TG_LABEL_FUNCTION static inline
#define TG_LABEL_INLINE static inline
#endif

#define TG_LABEL_CATEGORIES 1024u /* as many as a policy may have (tables.h) */
#define TG_LABEL_HIGHEST 65534u	  /* the highest valid category of CIPSO's tags 2 and 5 */

#define TG_IPV4_OPTIONS 40u /* bytes of options in a header, at most */
#define TG_IPV4_BUFFER 64u  /* a power of two */
#define TG_IPV6_BUFFER 256u /* a power of two; longer hop-by-hop headers are refused */

#define TG_OPTION_CIPSO 134u
#define TG_OPTION_IPV4_EXPERIMENT 158u
#define TG_OPTION_CALIPSO 7u
#define TG_OPTION_IPV6_EXPERIMENT 0x1eu

#define TG_TAG_BITMAP 1u
#define TG_TAG_ENUMERATED 2u
#define TG_TAG_RANGES 5u
#define TG_TAG_DSM 7u
#define TG_TAG_LOCAL 128u
#define TG_TAG_SEALED 129u

#define TG_DSM_DOI 0x10001000u
#define TG_SEALED_BODY 20u
#define TG_SEALED_VERSION 1u

/* Why bytes are no label; ReadError of crates/netlabel/src/error.rs, in its order. */
enum tg_label_error {
	TG_LABEL_OK,
	TG_LABEL_TRUNCATED,
	TG_LABEL_TOO_LONG,
	TG_LABEL_OPTION_TYPE,
	TG_LABEL_OPTION_LENGTH,
	TG_LABEL_SECOND_LABEL,
	TG_LABEL_PADDING,
	TG_LABEL_TOO_MUCH_PADDING,
	TG_LABEL_RESERVED_DOI,
	TG_LABEL_WRONG_DOI,
	TG_LABEL_TAG_TYPE,
	TG_LABEL_TAG_LENGTH,
	TG_LABEL_SECOND_TAG,
	TG_LABEL_ALIGNMENT,
	TG_LABEL_CATEGORY,
	TG_LABEL_ORDER,
	TG_LABEL_REVERSED,
	TG_LABEL_PARAMETER,
	TG_LABEL_COMPARTMENTS,
	TG_LABEL_CHECKSUM,
	TG_LABEL_VERSION,
	/* What Rust takes, and this header has no room for. */
	TG_LABEL_HIGH_CATEGORY, /* TG_LABEL_CATEGORIES or above */
	TG_LABEL_LONG_HEADER,	/* a hop-by-hop header of more than TG_IPV6_BUFFER bytes */
};

struct tg_ipv4_options {
	__u8 bytes[TG_IPV4_BUFFER];
};

struct tg_ipv6_options {
	__u8 bytes[TG_IPV6_BUFFER]; /* with the header's first two bytes */
};

/* A packet's label. The members that its option and tag do not have are 0. */
struct tg_netlabel {
	__u64 categories[TG_LABEL_CATEGORIES / 64]; /* as in struct tg_level */
	__u64 mac;				    /* sealed */
	__u32 option;				    /* its type; 0: the packet has no label */
	__u32 at, length;			    /* where it is in the buffer, in bytes */
	__u32 tag;				    /* 0: CALIPSO */
	__u32 doi;				    /* 0: an option that has none */
	__u32 sensitivity;
	__u32 context; /* the SID of tag 128, DSM's context, the number of a sealed one */
	__u32 node;    /* DSM's, and sealed */
	__u32 key;     /* number of the key; sealed */
	__u16 window, generation; /* the low bits; sealed */
};

#define TG_LABEL_AT(options, at) ((__u32)(options)->bytes[(at) & (sizeof((options)->bytes) - 1)])
#define TG_LABEL_16(options, at) (TG_LABEL_AT(options, at) << 8 | TG_LABEL_AT(options, (at) + 1))
#define TG_LABEL_32(options, at) (TG_LABEL_16(options, at) << 16 | TG_LABEL_16(options, (at) + 2))

TG_LABEL_INLINE void tg_label_clear(struct tg_netlabel *label)
{
	for (__u32 word = 0; word < TG_LABEL_CATEGORIES / 64; word++)
		label->categories[word] = 0;
	label->mac = 0;
	label->option = label->at = label->length = label->tag = label->doi = 0;
	label->sensitivity = label->context = label->node = label->key = 0;
	label->window = label->generation = 0;
}

/* Categories `low` to `high`, as far as they are in the word that begins with category `first`. A
 * function of its own, so that the verifier does not multiply its branches by the caller's loop. */
TG_LABEL_FUNCTION __u64 tg_label_span(__u32 first, __u32 low, __u32 high)
{
	__u32 last = first + 63, from, to;

	if (low > last || high < first)
		return 0;
	from = low > first ? low - first : 0;
	to = high < last ? high - first : 63;
	return ~0ull << (from & 63) & ~0ull >> (63 - (to & 63));
}

/* Adds categories `low` to `high`, as far as there is room for them. */
TG_LABEL_FUNCTION int tg_label_add(struct tg_netlabel *label, __u32 low, __u32 high)
{
	if (!label)
		return 0;
	for (__u32 word = 0; word < TG_LABEL_CATEGORIES / 64; word++)
		label->categories[word] |= tg_label_span(word * 64, low, high);
	return 0;
}

/* Eight categories, the lowest in the most significant bit, as numbers of a byte of a bitmap. */
TG_LABEL_INLINE __u64 tg_label_reversed(__u32 byte)
{
	byte = (byte & 0x0f) << 4 | byte >> 4;
	byte = (byte & 0x33) << 2 | (byte >> 2 & 0x33);
	return (byte & 0x55) << 1 | (byte >> 1 & 0x55);
}

/* One option among `length` bytes, at `at`; `ended`: the options have ended before. Returns where
 * the next one is, and above 16 bits whether they have ended; or an error, negated. A function of
 * its own, so that the verifier does not multiply its branches by the caller's loop. */
TG_LABEL_FUNCTION int tg_ipv4_step(const struct tg_ipv4_options *options, __u32 length, __u32 at,
				   __u32 ended, struct tg_netlabel *label)
{
	__u32 kind, size;

	if (!options || !label || at >= length)
		return -TG_LABEL_TRUNCATED;
	kind = TG_LABEL_AT(options, at);
	if (ended && kind)
		return -TG_LABEL_PADDING;
	if (kind <= 1)
		return (int)(at + 1) | (kind ? 0 : 1 << 16);
	if (length - at < 2)
		return -TG_LABEL_TRUNCATED;
	size = TG_LABEL_AT(options, at + 1);
	if (size < 2)
		return -TG_LABEL_OPTION_LENGTH;
	if (size > length - at)
		return -TG_LABEL_TRUNCATED;
	if (kind == TG_OPTION_CIPSO || kind == TG_OPTION_IPV4_EXPERIMENT) {
		if (label->option)
			return -TG_LABEL_SECOND_LABEL;
		label->option = kind;
		label->at = at;
		label->length = size;
	}
	return (int)(at + size);
}

/* The option with the label, among `length` bytes of options; __ip_options_compile. */
TG_LABEL_FUNCTION int tg_ipv4_find(const struct tg_ipv4_options *options, __u32 length,
				   struct tg_netlabel *label)
{
	__u32 at = 0, ended = 0;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	if (length > TG_IPV4_OPTIONS)
		return TG_LABEL_TOO_LONG;
	for (__u32 step = 0; step < TG_IPV4_OPTIONS; step++) {
		if (at >= length)
			break;
		int next = tg_ipv4_step(options, length, at, ended, label);

		if (next < 0)
			return -next;
		at = (__u32)next & 0xffff;
		ended |= (__u32)next >> 16;
	}
	return TG_LABEL_OK;
}

/* Tag 1: a bitmap of `size` bytes; cipso_v4_map_cat_rbm_ntoh. */
TG_LABEL_FUNCTION int tg_cipso_bitmap(const struct tg_ipv4_options *options, __u32 at, __u32 size,
				      struct tg_netlabel *label)
{
	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	for (__u32 byte = 0; byte < TG_IPV4_OPTIONS; byte++) {
		if (byte >= size)
			break;
		label->categories[byte / 8 & 15] |=
			tg_label_reversed(TG_LABEL_AT(options, at + byte)) << (byte % 8 * 8);
	}
	return TG_LABEL_OK;
}

/* Tag 2: categories by their numbers, ascending; cipso_v4_map_cat_enum_valid and _ntoh. */
TG_LABEL_FUNCTION int tg_cipso_enumerated(const struct tg_ipv4_options *options, __u32 at,
					  __u32 size, struct tg_netlabel *label)
{
	__u32 least = 0, high = 0;

	if (!options || !label || size & 1)
		return TG_LABEL_TAG_LENGTH;
	for (__u32 place = 0; place < TG_IPV4_OPTIONS; place += 2) {
		if (place >= size)
			break;
		__u32 category = TG_LABEL_16(options, at + place);

		if (category < least)
			return TG_LABEL_ORDER;
		if (category > TG_LABEL_HIGHEST)
			return TG_LABEL_CATEGORY;
		least = category + 1;
		high |= category / TG_LABEL_CATEGORIES;
		label->categories[category / 64 & 15] |= 1ull << (category & 63);
	}
	return high ? TG_LABEL_HIGH_CATEGORY : TG_LABEL_OK;
}

/* Tag 5: pairs of upper and lower end, descending; cipso_v4_map_cat_rng_valid and _ntoh. */
TG_LABEL_FUNCTION int tg_cipso_ranges(const struct tg_ipv4_options *options, __u32 at, __u32 size,
				      struct tg_netlabel *label)
{
	__u32 end = 1u << 16, highest = 0;

	if (!options || !label || size & 1)
		return TG_LABEL_TAG_LENGTH;
	for (__u32 place = 0; place < TG_IPV4_OPTIONS; place += 4) {
		if (place >= size)
			break;
		__u32 high = TG_LABEL_16(options, at + place);
		__u32 low = place + 2 < size ? TG_LABEL_16(options, at + place + 2) : 0;

		if (high >= end)
			return TG_LABEL_ORDER;
		if (high > TG_LABEL_HIGHEST)
			return TG_LABEL_CATEGORY;
		if (low > high)
			return TG_LABEL_REVERSED;
		end = low;
		highest |= high / TG_LABEL_CATEGORIES;
		tg_label_add(label, low, high);
	}
	return highest ? TG_LABEL_HIGH_CATEGORY : TG_LABEL_OK;
}

/* DSM's two parameters, in `size` bytes. */
TG_LABEL_FUNCTION int tg_dsm_read(const struct tg_ipv4_options *options, __u32 at, __u32 size,
				  struct tg_netlabel *label)
{
	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	if (label->doi != TG_DSM_DOI)
		return TG_LABEL_WRONG_DOI;
	if (size != 12)
		return TG_LABEL_TAG_LENGTH;
	if (TG_LABEL_16(options, at) != 0x0306 || TG_LABEL_16(options, at + 6) != 0x0606)
		return TG_LABEL_PARAMETER;
	label->context = TG_LABEL_32(options, at + 2);
	label->node = TG_LABEL_32(options, at + 8);
	return TG_LABEL_OK;
}

/* The body of a sealed label, in the buffer of either kind of options; src/sealed.rs. */
TG_LABEL_INLINE int tg_sealed_read(const __u8 *bytes, __u32 mask, __u32 at,
				   struct tg_netlabel *label)
{
	__u32 body[TG_SEALED_BODY];

	for (__u32 byte = 0; byte < TG_SEALED_BODY; byte++)
		body[byte] = bytes[(at + byte) & mask];
	label->tag = TG_TAG_SEALED;
	label->key = body[1];
	label->window = (__u16)(body[2] << 8 | body[3]);
	label->node = body[4] << 8 | body[5];
	label->generation = (__u16)(body[6] << 8 | body[7]);
	label->context = body[8] << 24 | body[9] << 16 | body[10] << 8 | body[11];
	label->mac = 0;
	for (__u32 byte = 0; byte < 8; byte++)
		label->mac |= (__u64)body[12 + byte] << (8 * byte);
	return body[0] == TG_SEALED_VERSION ? TG_LABEL_OK : TG_LABEL_VERSION;
}

/* The only tag of a CIPSO option; cipso_v4_validate. Its body has `size` bytes. */
TG_LABEL_FUNCTION int tg_cipso_tag(const struct tg_ipv4_options *options, __u32 at, __u32 size,
				   struct tg_netlabel *label)
{
	__u8 sid[4];

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	switch (label->tag) {
	case TG_TAG_BITMAP:
	case TG_TAG_ENUMERATED:
	case TG_TAG_RANGES:
		break;
	case TG_TAG_DSM:
		return tg_dsm_read(options, at, size, label);
	case TG_TAG_LOCAL:
		if (size != 4)
			return TG_LABEL_TAG_LENGTH;
		for (__u32 byte = 0; byte < 4; byte++)
			sid[byte] = (__u8)TG_LABEL_AT(options, at + byte);
		/* In the order of the machine's own bytes. */
		__builtin_memcpy(&label->context, sid, sizeof(sid));
		return TG_LABEL_OK;
	case TG_TAG_SEALED:
		if (size != TG_SEALED_BODY)
			return TG_LABEL_TAG_LENGTH;
		return tg_sealed_read(options->bytes, TG_IPV4_BUFFER - 1, at, label);
	default:
		return TG_LABEL_TAG_TYPE;
	}
	if (size < 2)
		return TG_LABEL_TAG_LENGTH;
	if (TG_LABEL_AT(options, at))
		return TG_LABEL_ALIGNMENT;
	label->sensitivity = TG_LABEL_AT(options, at + 1);
	if (label->tag == TG_TAG_BITMAP)
		return tg_cipso_bitmap(options, at + 2, size - 2, label);
	if (label->tag == TG_TAG_ENUMERATED)
		return tg_cipso_enumerated(options, at + 2, size - 2, label);
	return tg_cipso_ranges(options, at + 2, size - 2, label);
}

/* The label in `length` bytes of options, as the header has them. label->option is 0 if there is
 * none. Returns enum tg_label_error. */
TG_LABEL_FUNCTION int tg_ipv4_label(const struct tg_ipv4_options *options, __u32 length,
				    struct tg_netlabel *label)
{
	__u32 at, size;
	int error;

	if (!options || !label)
		return TG_LABEL_TRUNCATED;
	tg_label_clear(label);
	error = tg_ipv4_find(options, length, label);
	if (error || !label->option)
		return error;
	at = label->at;
	size = label->length;
	if (label->option == TG_OPTION_IPV4_EXPERIMENT) {
		if (size != 2 + TG_SEALED_BODY)
			return TG_LABEL_OPTION_LENGTH;
		return tg_sealed_read(options->bytes, TG_IPV4_BUFFER - 1, at + 2, label);
	}
	if (size < 8)
		return TG_LABEL_OPTION_LENGTH;
	label->doi = TG_LABEL_32(options, at + 2);
	if (!label->doi)
		return TG_LABEL_RESERVED_DOI;
	label->tag = TG_LABEL_AT(options, at + 6);
	length = TG_LABEL_AT(options, at + 7);
	if (length < 2 || length > size - 6)
		return TG_LABEL_TAG_LENGTH;
	if (length < size - 6)
		return TG_LABEL_SECOND_TAG;
	return tg_cipso_tag(options, at + 8, length - 2, label);
}

#endif
