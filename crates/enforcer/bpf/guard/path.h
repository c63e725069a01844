/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths of files, as rules have them: from the root of the mount namespace, whatever the root of
 * the process is. Rules are found by hashes, whose key is made anew with each database.
 */
#ifndef TOLLGATE_GUARD_PATH_H
#define TOLLGATE_GUARD_PATH_H

#include "guard.h"
#include "maps.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../read.h"

#define TG_GUARD_STEPS (TG_GUARD_DEPTH + 8u) /* components and mounts */
#define TG_GUARD_SHORT 4u		     /* words of a name that are read at once */
#define TG_GUARD_LONGEST 8u		     /* times that many, in the longest name */

/* Where a file is: addresses of its dentry and its struct mount, of which the others are read. */
struct tg_guard_walk {
	__u64 dentry, mount;
	union {
		__u64 near[3]; /* what is read of the mount at once, from mnt_parent on */
		struct {
			__u64 above, point, top; /* the mount's parent, its place there, its root */
		};
	};
	__u32 first; /* the components from this one on are known */
	__u32 deep;  /* there are more than a rule can have */
};

/* What is read of a dentry at once: from d_parent on, and its name, if that is a short one. Each
 * read costs as much as hashing a name. */
struct tg_guard_near {
	__u64 words[4], name[TG_GUARD_SHORT];
};

/* A member of what was read at once, from the member `from` on. All kernels from 6.1 to 7.2 have it
 * there; in another one it is 0, and no path has a rule. */
#define TG_GUARD_NEAR(words, type, from, member)                                                   \
	({                                                                                         \
		__u64 in_ =                                                                        \
			bpf_core_field_offset(type, member) - bpf_core_field_offset(type, from);   \
		in_ <= sizeof(words) - sizeof(__u64)                                               \
			? *(typeof(((type *)0)->member) *)((char *)(words) + in_)                  \
			: 0;                                                                       \
	})

static __always_inline __u64 tg_guard_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * (READ_ONCE(guard_state.secret[1]) | 1);
	return hash ^ hash >> 32;
}

/* Not 0: bytes of a word differ from digits. Only those of `mask` are looked at. */
static __always_inline __u64 tg_guard_no_digits(__u64 word, __u64 mask)
{
	__u64 tens = word ^ 0x3030303030303030, over = word + 0x0606060606060606;

	return (tens | (over ^ 0x3030303030303030)) & 0xf0f0f0f0f0f0f0f0 & mask;
}

/* Adds up to TG_GUARD_SHORT words to the hash of a name, and to `others` what is no digit. */
static __always_inline __u64 tg_guard_add(__u64 hash, const __u64 *words, __u32 length,
					  __u64 *others)
{
	TG_UNROLL
	for (__u32 i = 0; i < TG_GUARD_SHORT; i++) {
		__u64 mask = ~0ULL;

		if (length <= 8 * i)
			break;
		if (length < 8 * i + 8)
			mask >>= 8 * (8 * i + 8 - length);
		hash = tg_guard_mix(hash, words[i] & mask);
		*others |= tg_guard_no_digits(words[i], mask);
	}
	return hash;
}

/* The hash of a component: one for all numbers, as of an empty name. The same is in crates/guard
 * (`hash`). `words` is room for a part of the name, and is the beginning already if that is
 * `known`. */
static __always_inline __u64 tg_guard_hash_name(__u64 name, __u32 length, __u64 *words, int known)
{
	__u64 others = 0, hash = READ_ONCE(guard_state.secret[0]);

	TG_ROLL
	for (__u32 i = 0; i < TG_GUARD_LONGEST; i++) {
		__u32 at = i * 8 * TG_GUARD_SHORT, left = length - at;

		if (at >= length)
			break;
		if (left > 8 * TG_GUARD_SHORT)
			left = 8 * TG_GUARD_SHORT;
		TG_OPAQUE(left);
		if (left > 8 * TG_GUARD_SHORT)
			break;
		if (i || !known)
			bpf_probe_read_kernel(words, left, (void *)(name + at));
		hash = tg_guard_add(hash, words, left, &others);
	}
	return others ? tg_guard_mix(hash, length)
		      : tg_guard_mix(READ_ONCE(guard_state.secret[0]), 0);
}

static __always_inline void tg_guard_enter_mount(struct tg_guard_walk *walk, __u64 mount)
{
	__u64 above, point, top;

	walk->mount = mount;
	bpf_probe_read_kernel(walk->near, sizeof walk->near,
			      (void *)(mount + bpf_core_field_offset(struct mount, mnt_parent)));
	above = (__u64)TG_GUARD_NEAR(walk->near, struct mount, mnt_parent, mnt_parent);
	point = (__u64)TG_GUARD_NEAR(walk->near, struct mount, mnt_parent, mnt_mountpoint);
	top = (__u64)TG_GUARD_NEAR(walk->near, struct mount, mnt_parent, mnt.mnt_root);
	walk->above = above;
	walk->point = point;
	walk->top = top;
}

/* Begins a walk at a dentry and a struct vfsmount. */
static __always_inline void tg_guard_begin_walk(struct tg_guard_walk *walk, __u64 dentry,
						__u64 mount)
{
	walk->dentry = dentry;
	tg_guard_enter_mount(walk, mount - bpf_core_field_offset(struct mount, mnt));
}

/* From the root of a mount to where it is mounted. Returns 1 at the root of all, or 0. */
static __always_inline int tg_guard_cross(struct tg_guard_walk *walk)
{
	if (walk->above == walk->mount)
		return 1;
	walk->dentry = walk->point;
	tg_guard_enter_mount(walk, walk->above);
	return 0;
}

/* One step up. Returns 1 if there is no other. */
TG_FUNCTION int tg_guard_hash_step(struct tg_guard_question *question, struct tg_guard_walk *walk)
{
	struct tg_guard_near near = {};
	__u64 from, parent, name;
	__u32 at, length;
	int known;

	if (!question || !walk)
		return 1;
	if (walk->dentry == walk->top)
		return tg_guard_cross(walk);
	from = walk->dentry + bpf_core_field_offset(struct dentry, d_parent);
	bpf_probe_read_kernel(&near, sizeof near, (void *)from);
	parent = (__u64)TG_GUARD_NEAR(near.words, struct dentry, d_parent, d_parent);
	name = (__u64)TG_GUARD_NEAR(near.words, struct dentry, d_parent, d_name.name);
	length = TG_GUARD_NEAR(near.words, struct dentry, d_parent, d_name.len);
	known = name == from + sizeof near.words;
	if (parent == walk->dentry)
		return 1;
	walk->dentry = parent;
	at = walk->first - 1;
	if (at >= TG_GUARD_DEPTH) {
		walk->deep = 1;
		return 1;
	}
	walk->first = at;
	question->path[at] = tg_guard_hash_name(name, length, near.name, known);
	return 0;
}

/* The length of a name without the end that mkstemp(3) makes; 0: it has none. The name of what is
 * mounted is in the directory above. */
static __always_inline __u32 tg_guard_stem_length(__u64 dentry, __u64 mount)
{
	__u32 length = TG_MEMBER(dentry, struct dentry, d_name.len);

	if (dentry == (__u64)TG_MEMBER(mount, struct vfsmount, mnt_root) ||
	    length <= TG_GUARD_RANDOM)
		return 0;
	return length - TG_GUARD_RANDOM;
}

/* Fills in the hash of a path's stem. */
TG_FUNCTION int tg_guard_hash_stem(struct tg_guard_question *question, __u64 dentry, __u64 mount)
{
	__u32 length = tg_guard_stem_length(dentry, mount);
	__u64 words[TG_GUARD_SHORT] = {}, name;

	if (!question || !length || !question->path[TG_GUARD_DEPTH - 2])
		return 0;
	name = (__u64)TG_MEMBER(dentry, struct dentry, d_name.name);
	question->stem = tg_guard_mix(question->path[TG_GUARD_DEPTH - 2],
				      tg_guard_hash_name(name, length, words, 0));
	return 0;
}

/* Fills in the hashes of a path. */
TG_FUNCTION int tg_guard_hash_path(struct tg_guard_question *question, __u64 dentry, __u64 mount)
{
	struct tg_guard_walk walk = {.first = TG_GUARD_DEPTH};
	__u64 hash = READ_ONCE(guard_state.secret[0]);
	int above = 0;

	if (!question)
		return 0;
	tg_guard_begin_walk(&walk, dentry, mount);
	TG_ROLL
	for (__u32 i = 0; i < TG_GUARD_STEPS && !above; i++)
		above = tg_guard_hash_step(question, &walk);
	question->first = walk.first;
	if (walk.deep || !above) {
		question->first = TG_GUARD_DEPTH;
		__builtin_memset(question->path, 0, sizeof question->path);
	}
	TG_ROLL
	for (__u64 i = question->first; i < TG_GUARD_DEPTH; i++) {
		__u64 at = i;

		TG_OPAQUE(at);
		if (at >= TG_GUARD_DEPTH)
			break;
		hash = tg_guard_mix(hash, question->path[at]);
		question->path[at] = hash;
	}
	return 0;
}

/* Fills in the hash of another file's path that is in the directory of the last one. */
TG_FUNCTION int tg_guard_hash_next(struct tg_guard_question *question, __u64 dentry)
{
	struct tg_guard_walk walk = {.dentry = dentry, .first = TG_GUARD_DEPTH};
	__u64 above = READ_ONCE(guard_state.secret[0]);

	if (!question || question->first >= TG_GUARD_DEPTH)
		return 0;
	question->stem = 0;
	if (question->first < TG_GUARD_DEPTH - 1)
		above = question->path[TG_GUARD_DEPTH - 2];
	tg_guard_hash_step(question, &walk);
	question->path[TG_GUARD_DEPTH - 1] =
		tg_guard_mix(above, question->path[TG_GUARD_DEPTH - 1]);
	return 0;
}

/* Writes the next component to an event. Returns 1 if there is no other. */
TG_FUNCTION int tg_guard_tell_step(struct tg_guard_event *event, struct tg_guard_walk *walk)
{
	if (!event || !walk)
		return 1;
	if (walk->dentry == walk->top)
		return tg_guard_cross(walk);
	const void *name = TG_MEMBER(walk->dentry, struct dentry, d_name.name);
	__u64 parent = (__u64)TG_MEMBER(walk->dentry, struct dentry, d_parent);
	__u64 at = walk->first;

	if (parent == walk->dentry)
		return 1;
	walk->dentry = parent;
	TG_OPAQUE(at);
	if (at > TG_GUARD_OBJECT - TG_GUARD_COMPONENT) {
		event->cut = 1;
		return 1;
	}
	long length = bpf_probe_read_kernel_str(event->object + at, TG_GUARD_COMPONENT, name);

	if (length > 0)
		walk->first = at + length;
	return 0;
}

/* Writes the components of a path, from the last to the first. */
static __noinline int tg_guard_tell_path(struct tg_guard_event *event, __u64 dentry, __u64 mount)
{
	struct tg_guard_walk walk = {};
	int above = 0;

	tg_guard_begin_walk(&walk, dentry, mount);
	TG_ROLL
	for (__u32 i = 0; i < 2 * TG_GUARD_STEPS && !above; i++)
		above = tg_guard_tell_step(event, &walk);
	if (!above)
		event->cut = 1;
	event->length = walk.first;
	return 0;
}

#endif
