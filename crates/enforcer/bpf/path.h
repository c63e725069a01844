/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names and paths of files, as an event has them (d_path of fs/d_path.c). */
#ifndef TOLLGATE_PATH_H
#define TOLLGATE_PATH_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "read.h"

#define TG_PATH_DEPTH 32u
/* A component is read if there is this much room left, plus the mark of a path that is cut. */
#define TG_COMPONENT 256u
#define TG_PATH_ROOM (TG_EVENT_NAME - TG_COMPONENT - 16u)

#define TG_DELETED " (deleted)"

/* Reads a name to a place in the event's name. Returns the place for the next one. */
static __always_inline __u64 tg_tell_name(struct tg_event *event, __u64 at, __u64 dentry)
{
	const void *name = TG_MEMBER(dentry, struct dentry, d_name.name);

	TG_OPAQUE(at);
	if (at >= TG_PATH_ROOM)
		return at;
	__u64 length = bpf_probe_read_kernel_str(event->name + at, TG_COMPONENT, name);

	return length <= TG_COMPONENT ? at + length : at;
}

/* d_find_alias without its preferences: a name of the inode. */
static __always_inline __u64 tg_alias(__u64 inode)
{
	if (!bpf_core_field_exists(struct dentry, d_u.d_alias))
		return 0;
	__u64 alias = (__u64)TG_MEMBER(inode, struct inode, i_dentry.first);

	return alias ? alias - bpf_core_field_offset(struct dentry, d_u.d_alias) : 0;
}

struct tg_place {
	__u64 dentry, mount; /* mount: address of its struct vfsmount */
};

static __always_inline struct tg_place tg_place_of(__u64 path)
{
	return (struct tg_place){
		.dentry = (__u64)TG_MEMBER(path, struct path, dentry),
		.mount = (__u64)TG_MEMBER(path, struct path, mnt),
	};
}

/* What d_path adds to the name of a deleted file: d_unlinked. */
static __always_inline __u64 tg_mark_deleted(struct tg_event *event, __u64 at, __u64 dentry)
{
	if (TG_MEMBER(dentry, struct dentry, d_hash.pprev))
		return at;
	at--; /* the NUL */
	TG_OPAQUE(at);
	if (at >= TG_COMPONENT)
		return at + 1;
	__builtin_memcpy(event->name + at, TG_DELETED, sizeof TG_DELETED);
	return at + sizeof TG_DELETED;
}

/* A walk from a file up to the task's root. */
struct tg_walk {
	struct tg_place place, root;
	__u64 at;    /* place for the next component */
	__u32 named; /* the first step is done */
};

/* One step up. Returns 1 if there is nothing above. It is a function of its own, so that the
 * verifier examines it once, and not once per component. */
TG_FUNCTION int tg_tell_component(struct tg_event *event, struct tg_walk *walk)
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
 * prepend_path of fs/d_path.c: the components from the last to the first, up to the task's
 * root. A path that is cut ends in a component `.`.
 */
TG_FUNCTION int tg_tell_path(struct tg_event *event, __u64 path, __u64 root)
{
	if (!event)
		return 0;
	struct tg_walk walk = {.place = tg_place_of(path), .root = tg_place_of(root)};

	TG_ROLL
	for (__u32 depth = 0; depth < TG_PATH_DEPTH && walk.at < TG_PATH_ROOM; depth++)
		if (tg_tell_component(event, &walk))
			return 1;
	__u64 at = walk.at;

	TG_OPAQUE(at);
	if (at < TG_EVENT_NAME - 1)
		event->name[at] = '.';
	return 0;
}

#endif
