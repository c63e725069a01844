/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sealed labels: what they cover, and when they are valid (crates/netlabel/src/sealed.rs). */
#ifndef TOLLGATE_DATAPATH_SEAL_H
#define TOLLGATE_DATAPATH_SEAL_H

#include <bpf/bpf_endian.h>

#include "../compiler.h"
#include "../libbpf.h"
#include "../state.h"
#include "datapath.h"
#include "decide.h"
#include "flow.h"
#include "netlabel.h"
#include "sealed.h"

#define TG_WINDOW_NANOSECONDS 8000000000ull /* WINDOW_SECONDS */

/* The time window of now. The clock runs on if there is no daemon. */
static __always_inline __u64 tg_window_now(void)
{
	return (bpf_ktime_get_boot_ns() + READ_ONCE(state.clock)) / TG_WINDOW_NANOSECONDS;
}

/* The MAC of a label for a packet. The window is all of it, and `label` has the low bits. */
TG_FUNCTION __u64 tg_seal_for(const struct tg_flow *flow, const struct tg_netlabel *label,
			      const struct tg_seal *seal, __u64 window, __u32 key)
{
	__u64 addresses[4];
	struct tg_seal_key secret;
	struct tg_seal_input input = {.version = TG_SEALED_VERSION};

	if (!flow || !label || !seal)
		return 0;
	key &= TG_SEAL_KEYS - 1;
	secret.word[0] = seal->key[key][0];
	secret.word[1] = seal->key[key][1];
	input.source_port = flow->port[0];
	input.destination_port = flow->port[1];
	/* Each fragment has the protocol of the whole; ports, only the first has. */
	input.protocol = flow->protocol;
	input.node = bpf_htons(label->node);
	input.doi = bpf_htonl(label->doi);
	input.context = bpf_htonl(label->context);
	input.generation = bpf_cpu_to_be64(seal->generation);
	input.window = bpf_cpu_to_be64(window);
	if (!flow->six) {
		addresses[0] = flow->source[0] | (__u64)flow->destination[0] << 32;
		return tg_seal(addresses, 1, &input, &secret);
	}
	__builtin_memcpy(addresses, flow->source, sizeof flow->source);
	__builtin_memcpy(addresses + 2, flow->destination, sizeof flow->destination);
	return tg_seal(addresses, 4, &input, &secret);
}

/* Checks a label that a packet brought: 0, or why it is not valid, enum tg_fate. */
TG_FUNCTION int tg_unseal(const struct tg_flow *flow, const struct tg_netlabel *label,
			  const struct tg_seal *seal, __u64 now)
{
	__u32 known = 0;

	if (!flow || !label || !seal)
		return TG_DROPPED_KEY;
	__u64 window = tg_seal_window(label->window, now);

	if (!tg_seal_is_fresh(window, now, seal->tolerance))
		return TG_DROPPED_WINDOW;
	if (label->generation != (__u16)seal->generation)
		return TG_DROPPED_GENERATION;
	TG_ROLL
	for (__u32 key = 0; key < TG_SEAL_KEYS; key++) {
		if (key >= seal->keys || seal->number[key] != label->key)
			continue;
		known = 1;
		if (tg_seal_for(flow, label, seal, window, key) == label->mac)
			return 0;
	}
	return known ? TG_DROPPED_SEAL : TG_DROPPED_KEY;
}

#endif
