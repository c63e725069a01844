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
#define TG_GUARD_WORDS_OF_NAME 32u

/* Where a file is: addresses of its dentry and its struct vfsmount. */
struct tg_guard_walk {
	__u64 dentry, mount;
	__u32 first; /* the components from this one on are known */
	__u32 deep;  /* there are more than a rule can have */
};

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

/* The hash of a component: one for all numbers, as of an empty name. The same is in crates/guard
 * (`hash`). */
TG_FUNCTION __u64 tg_guard_hash_name(__u64 name, __u32 length)
{
	__u64 secret = READ_ONCE(guard_state.secret[0]), hash = secret, others = 0;

	TG_ROLL
	for (__u32 i = 0; i < TG_GUARD_WORDS_OF_NAME; i++) {
		__u32 at = i * 8, left = length - at;
		__u64 word = 0;

		if (at >= length)
			break;
		if (left > sizeof word)
			left = sizeof word;
		TG_OPAQUE(left);
		if (left > sizeof word)
			break;
		bpf_probe_read_kernel(&word, left, (void *)(name + at));
		hash = tg_guard_mix(hash, word);
		others |= tg_guard_no_digits(word, ~0ULL >> (64 - 8 * left));
	}
	return others ? tg_guard_mix(hash, length) : tg_guard_mix(secret, 0);
}

/* One step up. Returns 1 at the root, 2 at the root of a mount, and 0 at a component. */
static __always_inline int tg_guard_climb(struct tg_guard_walk *walk)
{
	__u64 dentry = walk->dentry, mount, above;
	__u64 top = (__u64)TG_MEMBER(walk->mount, struct vfsmount, mnt_root);
	__u64 parent = (__u64)TG_MEMBER(dentry, struct dentry, d_parent);

	if (dentry != top) {
		walk->dentry = parent;
		return parent == dentry;
	}
	mount = walk->mount - bpf_core_field_offset(struct mount, mnt);
	above = (__u64)TG_MEMBER(mount, struct mount, mnt_parent);
	walk->dentry = (__u64)TG_MEMBER(mount, struct mount, mnt_mountpoint);
	walk->mount = above + bpf_core_field_offset(struct mount, mnt);
	return above == mount ? 1 : 2;
}

TG_FUNCTION int tg_guard_hash_step(struct tg_guard_question *question, struct tg_guard_walk *walk)
{
	if (!question || !walk)
		return 1;
	__u64 dentry = walk->dentry;
	__u32 at = walk->first - 1;
	int step = tg_guard_climb(walk);

	if (step)
		return step == 1;
	if (at >= TG_GUARD_DEPTH) {
		walk->deep = 1;
		return 1;
	}
	question->path[at] =
		tg_guard_hash_name((__u64)TG_MEMBER(dentry, struct dentry, d_name.name),
				   TG_MEMBER(dentry, struct dentry, d_name.len));
	walk->first = at;
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
static __noinline int tg_guard_hash_stem(struct tg_guard_question *question, __u64 dentry,
					 __u64 mount)
{
	__u32 length = tg_guard_stem_length(dentry, mount);

	if (!question || !length || !question->path[TG_GUARD_DEPTH - 2])
		return 0;
	question->stem = tg_guard_mix(
		question->path[TG_GUARD_DEPTH - 2],
		tg_guard_hash_name((__u64)TG_MEMBER(dentry, struct dentry, d_name.name), length));
	return 0;
}

/* Fills in the hashes of a path. */
static __noinline int tg_guard_hash_path(struct tg_guard_question *question, __u64 dentry,
					 __u64 mount)
{
	struct tg_guard_walk walk = {dentry, mount, .first = TG_GUARD_DEPTH};
	__u64 hash = READ_ONCE(guard_state.secret[0]);
	int above = 0;

	TG_ROLL
	for (__u32 i = 0; i < TG_GUARD_STEPS && !above; i++)
		above = tg_guard_hash_step(question, &walk);
	if (walk.deep || !above)
		walk.first = TG_GUARD_DEPTH;
	TG_ROLL
	for (__u32 i = 0; i < TG_GUARD_DEPTH; i++) {
		if (i < walk.first) {
			question->path[i] = 0;
		} else {
			hash = tg_guard_mix(hash, question->path[i]);
			question->path[i] = hash;
		}
	}
	return 0;
}

/* Writes the next component to an event. Returns 1 if there is no other. */
TG_FUNCTION int tg_guard_tell_step(struct tg_guard_event *event, struct tg_guard_walk *walk)
{
	if (!event || !walk)
		return 1;
	const void *name = TG_MEMBER(walk->dentry, struct dentry, d_name.name);
	__u64 at = walk->first;
	int step = tg_guard_climb(walk);

	if (step)
		return step == 1;
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
	struct tg_guard_walk walk = {dentry, mount};
	int above = 0;

	TG_ROLL
	for (__u32 i = 0; i < 2 * TG_GUARD_STEPS && !above; i++)
		above = tg_guard_tell_step(event, &walk);
	if (!above)
		event->cut = 1;
	event->length = walk.first;
	return 0;
}

#endif
