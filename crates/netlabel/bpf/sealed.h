/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The MAC of Tollgate's own label: SipHash-2-4 over what the label is bound to. The layout, and
 * what the MAC is good for, is described in crates/netlabel/src/sealed.rs.
 */
#ifndef TOLLGATE_SEALED_H
#define TOLLGATE_SEALED_H

#include "netlabel.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as SipHash reads them, which is little endian"
#endif

#define TG_SEALED_TOLERANCE (1u << 14) /* windows, at most; MOST_TOLERANCE of sealed.rs */

/* A key of 128 bits: its bytes, as two words. */
struct tg_seal_key {
	__u64 word[2];
};

/* What follows the addresses in the MAC's input, each member in network byte order. */
struct tg_seal_input {
	__u16 source_port, destination_port; /* 0 and 0 for what has no ports, and for fragments but
						the first */
	__u8 protocol, version;
	__u16 node;
	__u32 doi, context;
	__u64 generation, window;
};

_Static_assert(sizeof(struct tg_seal_input) == 32, "the MAC's input has no holes");

struct tg_siphash {
	__u64 v0, v1, v2, v3;
};

TG_LABEL_INLINE __u64 tg_rotated(__u64 word, __u32 bits)
{
	return word << bits | word >> (64 - bits);
}

TG_LABEL_INLINE void tg_siphash_round(struct tg_siphash *state)
{
	state->v0 += state->v1;
	state->v1 = tg_rotated(state->v1, 13) ^ state->v0;
	state->v0 = tg_rotated(state->v0, 32);
	state->v2 += state->v3;
	state->v3 = tg_rotated(state->v3, 16) ^ state->v2;
	state->v0 += state->v3;
	state->v3 = tg_rotated(state->v3, 21) ^ state->v0;
	state->v2 += state->v1;
	state->v1 = tg_rotated(state->v1, 17) ^ state->v2;
	state->v2 = tg_rotated(state->v2, 32);
}

TG_LABEL_INLINE void tg_siphash_word(struct tg_siphash *state, __u64 word)
{
	state->v3 ^= word;
	tg_siphash_round(state);
	tg_siphash_round(state);
	state->v0 ^= word;
}

TG_LABEL_INLINE struct tg_siphash tg_siphash_start(const struct tg_seal_key *key)
{
	/* "somepseudorandomlygeneratedbytes" */
	return (struct tg_siphash){
		.v0 = key->word[0] ^ 0x736f6d6570736575ull,
		.v1 = key->word[1] ^ 0x646f72616e646f6dull,
		.v2 = key->word[0] ^ 0x6c7967656e657261ull,
		.v3 = key->word[1] ^ 0x7465646279746573ull,
	};
}

/* The hash of `bytes` bytes, all of which were given as words of 8. */
TG_LABEL_INLINE __u64 tg_siphash_end(struct tg_siphash *state, __u64 bytes)
{
	tg_siphash_word(state, bytes << 56);
	state->v2 ^= 0xff;
	for (__u32 round = 0; round < 4; round++)
		tg_siphash_round(state);
	return state->v0 ^ state->v1 ^ state->v2 ^ state->v3;
}

/* The MAC of a label of a packet with `words` words of addresses: 1 of IPv4, 4 of IPv6, as packets
 * have them, source before destination. */
TG_LABEL_INLINE __u64 tg_seal(const __u64 *addresses, __u32 words,
			      const struct tg_seal_input *input, const struct tg_seal_key *key)
{
	struct tg_siphash state = tg_siphash_start(key);
	__u64 rest[sizeof(*input) / 8];

	__builtin_memcpy(rest, input, sizeof(rest));
	for (__u32 word = 0; word < words; word++)
		tg_siphash_word(&state, addresses[word]);
	for (__u32 word = 0; word < sizeof(rest) / 8; word++)
		tg_siphash_word(&state, rest[word]);
	return tg_siphash_end(&state, 8 * words + sizeof(rest));
}

/* The time window with these low bits that is nearest to `now`. */
TG_LABEL_INLINE __u64 tg_seal_window(__u16 low, __u64 now)
{
	return now + (__u64)(__s64)(__s16)(__u16)(low - (__u16)now);
}

/* Whether a window is within `tolerance` windows of `now`. */
TG_LABEL_INLINE int tg_seal_is_fresh(__u64 window, __u64 now, __u32 tolerance)
{
	__u64 distance = window > now ? window - now : now - window;

	return distance <= (tolerance < TG_SEALED_TOLERANCE ? tolerance : TG_SEALED_TOLERANCE);
}

#endif
