/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event of a denial, with what the kernel's audit tells of the object (audit_log_lsm_data of
 * security/lsm_audit.c). Kernel structures are read at addresses: it is the denied who pays.
 */
#ifndef TOLLGATE_EVENT_H
#define TOLLGATE_EVENT_H

enum tg_verdict {
	TG_DENIED = -EACCES,
	TG_GRANTED = 0,
	TG_GRANTED_ONCE = 1, /* permissive, but not for all of this subject: nothing to remember */
};

#define TG_PATH_DEPTH 32u
/* A component is read where this much room is left, and the mark of a path that is cut. */
#define TG_COMPONENT 256u
#define TG_PATH_ROOM (TG_EVENT_NAME - TG_COMPONENT - 16u)

#define TG_DELETED " (deleted)"

#define TG_READ(to, address) bpf_probe_read_kernel(&(to), sizeof(to), (void *)(address))
#define TG_MEMBER(address, type, member)                                                           \
	({                                                                                         \
		typeof(((type *)0)->member) value_ = 0;                                            \
		TG_READ(value_, (address) + bpf_core_field_offset(type, member));                  \
		value_;                                                                            \
	})

/* What TG_ADDRESS has taken away. */
static __always_inline __u64 tg_anchor(void)
{
	void *volatile place = &state;
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof address, (void *)&place);
	return address;
}

/* Reads a name to that place in the event's; returns where the next one goes. */
static __always_inline __u64 tg_tell_name(struct tg_event *event, __u64 at, __u64 dentry)
{
	const void *name = TG_MEMBER(dentry, struct dentry, d_name.name);

	TG_OPAQUE(at);
	if (at >= TG_PATH_ROOM)
		return at;
	__u64 length = bpf_probe_read_kernel_str(event->name + at, TG_COMPONENT, name);

	return length <= TG_COMPONENT ? at + length : at;
}

/* d_find_alias, without its preferences: a name of the inode. */
static __always_inline __u64 tg_alias(__u64 inode)
{
	if (!bpf_core_field_exists(struct dentry, d_u.d_alias))
		return 0;
	__u64 alias = (__u64)TG_MEMBER(inode, struct inode, i_dentry.first);

	return alias ? alias - bpf_core_field_offset(struct dentry, d_u.d_alias) : 0;
}

struct tg_place {
	__u64 dentry, mount; /* mount: of its struct vfsmount */
};

static __always_inline struct tg_place tg_place(__u64 path)
{
	return (struct tg_place){
		.dentry = (__u64)TG_MEMBER(path, struct path, dentry),
		.mount = (__u64)TG_MEMBER(path, struct path, mnt),
	};
}

/* What d_path adds to the name of a file that has none any more: d_unlinked. */
static __always_inline __u64 tg_mark_deleted(struct tg_event *event, __u64 at, __u64 dentry)
{
	if (TG_MEMBER(dentry, struct dentry, d_hash.pprev))
		return at;
	at--; /* its NUL */
	TG_OPAQUE(at);
	if (at >= TG_COMPONENT)
		return at + 1;
	__builtin_memcpy(event->name + at, TG_DELETED, sizeof TG_DELETED);
	return at + sizeof TG_DELETED;
}

/* A walk from a file up to the task's root. */
struct tg_walk {
	struct tg_place place, root;
	__u64 at;    /* where the next component goes */
	__u32 named; /* the first step is done */
};

/* A step up. 1: there is nothing above. A function of its own: the verifier reads it once, not once
 * a component. */
TG_FUNCTION int tg_event_component(struct tg_event *event, struct tg_walk *walk)
{
	if (!event || !walk)
		return 1;
	struct tg_place place = walk->place;

	if (place.dentry == walk->root.dentry && place.mount == walk->root.mount)
		return 1;
	__u64 parent = (__u64)TG_MEMBER(place.dentry, struct dentry, d_parent);
	__u64 top = (__u64)TG_MEMBER(place.mount, struct vfsmount, mnt_root);
	__u32 named = walk->named;

	walk->named = 1;
	if (place.dentry == top) {
		__u64 mount = place.mount - bpf_core_field_offset(struct mount, mnt);
		__u64 above = (__u64)TG_MEMBER(mount, struct mount, mnt_parent);

		walk->place.dentry = (__u64)TG_MEMBER(mount, struct mount, mnt_mountpoint);
		walk->place.mount = above + bpf_core_field_offset(struct mount, mnt);
		return above == mount;
	}
	walk->at = tg_tell_name(event, walk->at, place.dentry);
	if (!named && place.dentry != parent)
		walk->at = tg_mark_deleted(event, walk->at, place.dentry);
	walk->place.dentry = parent;
	return place.dentry == parent;
}

/*
 * prepend_path of fs/d_path.c: components from the last to the first, up to the task's root. What
 * is not reached is told by a component `.`.
 */
TG_FUNCTION int tg_event_path(struct tg_event *event, __u64 path, __u64 root)
{
	if (!event)
		return 0;
	struct tg_walk walk = {.place = tg_place(path), .root = tg_place(root)};

	TG_ROLL
	for (__u32 depth = 0; depth < TG_PATH_DEPTH && walk.at < TG_PATH_ROOM; depth++)
		if (tg_event_component(event, &walk))
			return 1;
	__u64 at = walk.at;

	TG_OPAQUE(at);
	if (at < TG_EVENT_NAME - 1)
		event->name[at] = '.';
	return 0;
}

#include "endpoints.h"

/* What is known of the object. */
static __always_inline void tg_event_object(struct tg_event *event,
					    const struct tg_request *request)
{
	__u64 base = tg_anchor(), inode = request->inode + base, dentry = request->dentry + base;
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
		tg_event_path(event, request->path + base,
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

/* Whether a source has told less than its half of the events of a second. Others may have its
 * place: they share that half. */
static __always_inline int tg_within_share(__u32 source, __u64 second, __u32 limit)
{
	__u64 *place = &state.audit_source[source & (TG_AUDIT_SOURCES - 1)];
	__u64 begin = second << 32;

	if ((READ_ONCE(*place) ^ begin) >> 32)
		WRITE_ONCE(*place, begin);
	return (__u32)__sync_fetch_and_add(place, 1) < (limit + 1) / 2;
}

/* Whether this second has room for one more event of a source; counts it if not. */
static __always_inline int tg_within_limit(__u32 source, __u64 now)
{
	__u64 second = now / 1000000000;
	__u32 limit = READ_ONCE(state.audit_limit);

	/* Two CPUs may both begin a second: a few events more, none uncounted. */
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

/* Tells that `audited` was denied, or granted; counts it where it cannot be told. */
TG_FUNCTION int tg_tell(const struct tg_request *request, __u32 audited, int verdict)
{
	__u64 now = bpf_ktime_get_boot_ns(), id = bpf_get_current_pid_tgid();

	if (!request || !tg_within_limit(request->source, now))
		return 0;
	struct tg_generation *generation = tg_generation(TG_IN_FORCE);
	struct tg_event *event = 0;

	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < TG_EVENTS - TG_EVENTS_OF_BELLS)
		event = bpf_ringbuf_reserve(&events, sizeof *event, 0);

	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return 0;
	}
	__builtin_memset(event, 0, sizeof *event);
	event->time = now;
	event->kind = TG_EVENT_AVC;
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
	tg_event_object(event, request);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
	return 1;
}

#endif
