/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of calls that no rule allows. */
#ifndef TOLLGATE_GUARD_REPORT_H
#define TOLLGATE_GUARD_REPORT_H

#include "guard.h"
#include "maps.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

#define TG_GUARD_EVENTS_PER_SECOND 500u

/* Whether this second has room for another event. */
static __always_inline int tg_guard_within_limit(__u64 now)
{
	__u64 second = now / 1000000000;

	/* Two processors may both begin a second: a few more events, and none uncounted. */
	if (READ_ONCE(guard_state.second) != second) {
		WRITE_ONCE(guard_state.second, second);
		WRITE_ONCE(guard_state.count, 0);
	}
	return __sync_fetch_and_add(&guard_state.count, 1) < TG_GUARD_EVENTS_PER_SECOND;
}

/* Whether a call was learnt already. */
static __always_inline int tg_guard_is_met(const struct tg_guard_question *question,
					   const __u32 *target)
{
	struct tg_guard_met met = {
		.call = question->call,
		.value = question->value,
		.path = question->path[TG_GUARD_DEPTH - 1],
	};
	__u64 one = 1, *count;

	__builtin_memcpy(met.caller, question->caller, sizeof met.caller);
	if (target)
		__builtin_memcpy(met.target, target, sizeof met.target);
	count = bpf_map_lookup_elem(&guard_met, &met);
	if (count) {
		__sync_fetch_and_add(count, 1);
		return 1;
	}
	bpf_map_update_elem(&guard_met, &met, &one, BPF_ANY);
	return 0;
}

/* Reserves an event, and counts it if there is no room. */
static __always_inline struct tg_guard_event *tg_guard_reserve(void)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct tg_guard_event *event = 0;

	if (tg_guard_within_limit(now))
		event = bpf_ringbuf_reserve(&guard_events, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&guard_state.lost, 1);
		return 0;
	}
	__builtin_memset(event, 0, __builtin_offsetof(struct tg_guard_event, object));
	event->object[0] = 0;
	event->time = now;
	return event;
}

/* Describes a question, and who asks. The caller adds the object, and submits the event. `target`
 * is the digest of what is executed, or a null pointer. */
static __always_inline struct tg_guard_event *
tg_guard_begin_event(const struct tg_guard_question *question, const __u32 *target,
		     const struct tg_guard_program_of *program, __u32 mode)
{
	const struct cred *cred = bpf_get_current_task_btf()->cred;
	struct tg_guard_event *event = tg_guard_reserve();

	if (!event)
		return 0;
	event->call = question->call;
	event->value = question->value;
	event->mode = mode;
	event->class = question->class;
	event->denied = mode == TG_GUARD_ENFORCE;
	event->process = bpf_get_current_pid_tgid() >> 32;
	event->history = question->history;
	event->uid = cred->uid.val;
	event->euid = cred->euid.val;
	__builtin_memcpy(event->caller, question->caller, sizeof event->caller);
	if (target)
		__builtin_memcpy(event->target, target, sizeof event->target);
	bpf_get_current_comm(event->command, sizeof event->command);
	bpf_probe_read_kernel_str(event->program, sizeof event->program, program->path);
	return event;
}

#endif
