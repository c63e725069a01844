/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event of a denial, with the description of the object as the kernel's audit has it
 * (audit_log_lsm_data of security/lsm_audit.c). Kernel structures are read at addresses: only
 * the denied task pays for it.
 */
#ifndef TOLLGATE_EVENT_H
#define TOLLGATE_EVENT_H

#include "address.h"
#include "compiler.h"
#include "decide.h"
#include "endpoints.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "path.h"
#include "read.h"
#include "request.h"
#include "state.h"

/* Describes the object, as far as it is known. */
static __always_inline void tg_tell_object(struct tg_event *event, const struct tg_request *request)
{
	__u64 base = tg_state_address(), inode = request->inode + base,
	      dentry = request->dentry + base;
	__u64 fs;

	switch (request->object) {
	case TG_OBJECT_INODE:
		if (!request->dentry)
			dentry = tg_alias(inode);
		tg_tell_name(event, 0, dentry);
		break;
	case TG_OBJECT_PATH:
	case TG_OBJECT_IOCTL:
		fs = (__u64)TG_MEMBER(bpf_get_current_task(), struct task_struct, fs);
		tg_tell_path(event, request->path + base,
			     fs + bpf_core_field_offset(struct fs_struct, root));
		break;
	case TG_OBJECT_TASK:
		if (!request->task)
			break;
		event->number = TG_MEMBER(request->task + base, struct task_struct, tgid);
		bpf_probe_read_kernel_str(
			event->name, sizeof event->command,
			(void *)(request->task + base +
				 bpf_core_field_offset(struct task_struct, comm)));
		break;
	case TG_OBJECT_SOCKET:
		fs = (__u64)TG_MEMBER(bpf_get_current_task(), struct task_struct, fs);
		tg_tell_socket(event, request->sock + base,
			       fs + bpf_core_field_offset(struct fs_struct, root));
		break;
	case TG_OBJECT_PORT:
		tg_tell_port(event, request->number, request->text);
		break;
	case TG_OBJECT_PACKET:
		tg_read_packet(request->text, (struct tg_endpoints *)event->name);
		break;
	case TG_OBJECT_NAME:
		bpf_probe_read_kernel_str(event->name, TG_COMPONENT, (void *)request->text);
		break;
	}
	if (!request->inode)
		return;
	__u64 superblock = (__u64)TG_MEMBER(inode, struct inode, i_sb);

	event->inode = TG_MEMBER(inode, struct inode, i_ino);
	event->device = TG_MEMBER(superblock, struct super_block, s_dev);
	bpf_probe_read_kernel_str(
		event->filesystem, sizeof event->filesystem,
		(void *)(superblock + bpf_core_field_offset(struct super_block, s_id)));
}

/* Whether a source has reported less than its half of the events of a second. Other sources may
 * hash to the same place; they share that half. */
static __always_inline int tg_within_share(__u32 source, __u64 second, __u32 limit)
{
	__u64 *place = &state.audit_source[source & (TG_AUDIT_SOURCES - 1)];
	__u64 begin = second << 32;

	if ((READ_ONCE(*place) ^ begin) >> 32)
		WRITE_ONCE(*place, begin);
	return (__u32)__sync_fetch_and_add(place, 1) < (limit + 1) / 2;
}

/* Whether this second has room for another event of a source. If not, the event is counted. */
static __always_inline int tg_within_limit(__u32 source, __u64 now)
{
	__u64 second = now / 1000000000;
	__u32 limit = READ_ONCE(state.audit_limit);

	/* Two processors may both begin a second: a few more events, and none uncounted. */
	if (READ_ONCE(state.audit_second) != second) {
		WRITE_ONCE(state.audit_second, second);
		WRITE_ONCE(state.audit_count, 0);
	}
	if (tg_within_share(source, second, limit) &&
	    __sync_fetch_and_add(&state.audit_count, 1) < limit)
		return 1;
	tg_failed(TG_FAILED_EVENT_LIMIT);
	return 0;
}

/* A new event, if this second has room for another one of a source; else it is counted. */
static __always_inline struct tg_event *tg_begin_event(enum tg_event_kind kind, __u32 source)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct tg_event *event = 0;

	if (!tg_within_limit(source, now))
		return 0;
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < TG_EVENTS - TG_EVENTS_OF_BELLS)
		event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return 0;
	}
	__builtin_memset(event, 0, sizeof *event);
	event->time = now;
	event->kind = kind;
	return event;
}

static __always_inline void tg_end_event(struct tg_event *event)
{
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
}

/* Reports that `audited` was denied, or granted. Counts it if it cannot be reported. */
TG_FUNCTION int tg_tell_decision(const struct tg_request *request, __u32 audited, int verdict)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (!request)
		return 0;
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_event *event = tg_begin_event(TG_EVENT_AVC, request->source);

	if (!event)
		return 0;
	event->generation = generation ? generation->number : 0;
	event->source = request->source;
	event->target = request->target & ~TG_SID_SURVIVAL;
	event->class = request->class;
	event->requested = request->denied ? request->av : audited;
	event->denied = request->denied ? audited : 0;
	event->withheld = request->withheld;
	event->permissive = request->denied && verdict != TG_DENIED;
	event->pid = id;
	event->tgid = id >> 32;
	event->object = request->object;
	event->number = request->number;
	if (verdict == TG_DENIED)
		event->result = request->object == TG_OBJECT_CAPABILITY ? EPERM : EACCES;
	bpf_get_current_comm(event->command, sizeof event->command);
	tg_tell_object(event, request);
	tg_end_event(event);
	return 1;
}

#endif
