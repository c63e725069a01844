/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events without content, which say that a map has news for the daemon. */
#ifndef TOLLGATE_DOORBELL_H
#define TOLLGATE_DOORBELL_H

#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"

/* Tells the daemon that a map has news. A lost event is made up for by the next one. `process` is
 * 0 where no process has to do with it. */
static __always_inline void tg_ring(enum tg_event_kind kind, __u32 sid, __u32 device, __u64 inode,
				    __u32 process)
{
	struct tg_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);

	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return;
	}
	__builtin_memset(event, 0, sizeof *event);
	event->time = bpf_ktime_get_boot_ns();
	event->kind = kind;
	event->source = sid;
	event->device = device;
	event->inode = inode;
	event->tgid = process;
	bpf_ringbuf_submit(event, 0);
}

static __always_inline void tg_doorbell(enum tg_event_kind kind, __u32 sid, __u32 device,
					__u64 inode)
{
	tg_ring(kind, sid, device, inode, 0);
}

#endif
