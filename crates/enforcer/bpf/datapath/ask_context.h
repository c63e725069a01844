/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks the daemon for the context behind a sealed label that is valid. */
#ifndef TOLLGATE_DATAPATH_ASK_CONTEXT_H
#define TOLLGATE_DATAPATH_ASK_CONTEXT_H

#include "../endpoints.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../state.h"
#include "enforcer.h"
#include "flow.h"
#include "netlabel.h"

/* Each packet with the label comes here: one of them in this time is enough. */
#define TG_ASK_PAUSE 100000000ull /* nanoseconds */

/* Identifiers whose places are the same wait for one another. */
static __always_inline int tg_may_ask(const struct tg_netlabel *label, __u64 now)
{
	__u64 *asked = &state.asked[(label->context ^ label->node) & (TG_ASKED - 1)];

	if (now - READ_ONCE(*asked) < TG_ASK_PAUSE)
		return 0;
	WRITE_ONCE(*asked, now);
	return 1;
}

/* In a flood, the last room for events is that of other doorbells. A lost question is asked anew
 * for the next packet. */
static __always_inline void tg_ask_context(const struct tg_flow *flow,
					   const struct tg_netlabel *label)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct tg_event *event = 0;

	if (!tg_may_ask(label, now))
		return;
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < TG_EVENTS - TG_EVENTS_OF_BELLS)
		event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return;
	}
	struct tg_endpoints *ends = (void *)event->name;

	__builtin_memset(event, 0, sizeof *event);
	event->time = now;
	event->kind = TG_EVENT_IDENTIFIER;
	event->source = label->context;
	event->device = label->node;
	ends->family = flow->six ? AF_INET6 : AF_INET;
	__builtin_memcpy(ends->address[0], flow->source, sizeof ends->address[0]);
	bpf_ringbuf_submit(event, 0);
}

#endif
