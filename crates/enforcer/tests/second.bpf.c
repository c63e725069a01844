// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A second object file, of tests only: it shares maps, globals and contexts with the object
 * managers, and has none of their hooks. It asks the policy in force what a context may do to
 * another, as a program of traffic control.
 */
#include "answer.h"
#include "contexts.h"
#include "decide.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"
#include "state.h"

/* The question in a packet, and the answer. */
struct second_packet {
	__u8 ethernet[14], room[2];
	__u32 source, target, class; /* SIDs, SECCLASS */
	__u32 allowed;		     /* permissions */
};

SEC("tc") int second(struct __sk_buff *packet)
{
	struct second_packet asked = {};
	struct tg_decision answer = {};

	if (bpf_skb_load_bytes(packet, 0, &asked, sizeof asked))
		return 1;
	struct tg_request request = {
		.source = asked.source,
		.target = asked.target,
		.class = asked.class,
		.manager = TG_MANAGER_NETWORK,
	};

	tg_answer(TG_IN_FORCE, &request, &answer);
	asked.allowed = answer.allowed;
	return bpf_skb_store_bytes(packet, 0, &asked, sizeof asked, 0) ? 1 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
