/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Performance events. */
#ifndef TOLLGATE_PROGRAMS_PERF_H
#define TOLLGATE_PROGRAMS_PERF_H

#include "../address.h"
#include "../argument.h"
#include "../ask.h"
#include "../kernel.h"
#include "../label_address.h"
#include "../libbpf.h"
#include "../state.h"
#include "../subject.h"
#include "../survival.h"
#include "classes.h"
#include "enforcer.h"

/* PERF_SECURITY_* of include/linux/perf_event.h, in the order of the permissions */
#define PERF_SECURITY_TRACEPOINT 3
#define TG_PERF_AV(type) (1u << (type))
_Static_assert(PERF_EVENT__OPEN == TG_PERF_AV(0) && PERF_EVENT__CPU == TG_PERF_AV(1) &&
		       PERF_EVENT__KERNEL == TG_PERF_AV(2) &&
		       PERF_EVENT__TRACEPOINT == TG_PERF_AV(PERF_SECURITY_TRACEPOINT),
	       "classes.txt");

/* Checks whether the current task may probe the code of programs or of the kernel, if that is
 * what an event does. A probe inside an instruction of the daemon would break it. */
static __always_inline int tg_check_probe(__u32 type)
{
	if (type != tg_kernel.kprobes && type != tg_kernel.uprobes)
		return 0;
	return tg_check_security(SECURITY__SETENFORCE);
}

/* selinux_perf_event_open */
SEC("lsm/perf_event_open") int perf_event_open(unsigned long long *ctx)
{
	__u32 type;

	if (tg_kernel.perf_attributes) {
		struct perf_event_attr *attributes = TG_ARGUMENT(ctx, 0);

		if (tg_check_probe(attributes->type))
			return -EACCES;
		type = (__u64)TG_ARGUMENT(ctx, 1);
	} else {
		type = (__u64)TG_ARGUMENT(ctx, 0);
	}
	if (type > PERF_SECURITY_TRACEPOINT)
		return -EINVAL;
	return tg_ask_plainly(tg_direct_subject(), TG_SELF, SECCLASS_PERF_EVENT, TG_PERF_AV(type),
			      TG_MANAGER_PERF);
}

/* On a kernel that does not show the attributes to perf_event_open, the probe has been set by
 * now. It is removed again. */
SEC("lsm/perf_event_alloc") int BPF_PROG(perf_event_alloc, struct perf_event *event)
{
	if (tg_check_probe(event->attr.type))
		return -EACCES;
	return tg_make_labelled(TG_KERNEL_ADDRESS(event), SECCLASS_PERF_EVENT);
}

/* Linux 6.12 and later have no such hook: the program is attached to the function that would
 * call it. */
SEC("fentry/security_perf_event_free") int BPF_PROG(perf_event_free, struct perf_event *event)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(event));
	return 0;
}

static __always_inline int tg_check_perf(struct perf_event *event, __u32 av)
{
	return tg_ask_plainly(tg_direct_subject(), tg_sid_at(TG_KERNEL_ADDRESS(event)),
			      SECCLASS_PERF_EVENT, av, TG_MANAGER_PERF);
}

SEC("lsm/perf_event_read") int BPF_PROG(perf_event_read, struct perf_event *event)
{
	return tg_check_perf(event, PERF_EVENT__READ);
}

SEC("lsm/perf_event_write") int BPF_PROG(perf_event_write, struct perf_event *event)
{
	return tg_check_perf(event, PERF_EVENT__WRITE);
}

#endif
