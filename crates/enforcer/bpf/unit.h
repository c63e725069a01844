/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * systemd units: a process of the machine that executes a program in the cgroup of a unit gets
 * the unit's context. The unit is recognized only by the names that systemd gives cgroups:
 * from the root of the hierarchy on, it is the first cgroup that is not a slice. So no cgroup
 * need be observed when it is made, everything below belongs to the unit, and a user's manager
 * or a container is one unit with everything that it makes.
 */
#ifndef TOLLGATE_UNIT_H
#define TOLLGATE_UNIT_H

#include "compiler.h"
#include "contexts.h"
#include "decide.h"
#include "doorbell.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node___unit {
	const char *name;
};

struct cgroup___unit {
	int level;
	struct kernfs_node___unit *kn;
	struct cgroup___unit *ancestors[1];
};

struct css_set___unit {
	struct cgroup___unit *dfl_cgrp;
};

struct task_struct___unit {
	struct css_set___unit *cgroups;
};

#pragma clang attribute pop

#define TG_SLICES 16 /* the deepest nesting of slices that is searched */
/* The last eight bytes of a name, with its NUL. */
#define TG_TAIL_SLICE 0x006563696c732eull     /* .slice, and one byte before */
#define TG_TAIL_SERVICE 0x0065636976726573ull /* service */

/* The name of a cgroup. */
struct tg_unit_name {
	struct tg_unit_key key;
	__u64 tail; /* its last eight bytes */
};

/* The address of a task's cgroup in the default hierarchy. */
static __always_inline __u64 tg_cgroup_of(struct task_struct___unit *task)
{
	return (__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

static __always_inline __u64 tg_current_cgroup(void)
{
	return tg_cgroup_of((void *)bpf_get_current_task_btf());
}

/* Reads the name of an ancestor of a cgroup. Returns 1 if it is a slice. */
static __always_inline int tg_read_cgroup(__u64 cgroup, __u32 level, struct tg_unit_name *name)
{
	__u64 at = cgroup + bpf_core_field_offset(struct cgroup___unit, ancestors);
	struct cgroup___unit *ancestor = 0;
	const char *text;
	__u64 length;

	bpf_probe_read_kernel(&ancestor, sizeof ancestor, (void *)(at + level * sizeof ancestor));
	text = BPF_CORE_READ(ancestor, kn, name);
	length = bpf_probe_read_kernel_str(name->key.name, TG_UNIT_NAME, text);
	name->key.bits = 0;
	name->tail = 0;
	if (length > TG_UNIT_NAME)
		return 0;
	name->key.bits = 8 * length;
	if (length < sizeof name->tail)
		return 0;
	bpf_probe_read_kernel(&name->tail, sizeof name->tail, text + length - sizeof name->tail);
	return name->tail >> 8 == TG_TAIL_SLICE;
}

/* Finds the name of the unit that a cgroup belongs to. Returns -EACCES if it is too deep in
 * slices. */
TG_FUNCTION int tg_read_unit(__u64 cgroup, struct tg_unit_name *name)
{
	__u32 last = BPF_CORE_READ((struct cgroup___unit *)cgroup, level);

	if (!name)
		return 0;
	for (__u32 level = 1; level <= TG_SLICES; level++) {
		if (level > last)
			return 0;
		if (!tg_read_cgroup(cgroup, level, name))
			return 1;
	}
	return -EACCES;
}

/* Whether a task that executes a program with this label stays the machine's, because systemd
 * uses the program to start those of the unit. */
static __always_inline int tg_is_executor(__u32 file)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u32 type = generation ? tg_context_of(generation, file).type & (TG_TYPES - 1) : 0;

	return type && generation->executors[type >> 6] >> (type & 63) & 1;
}

/* Finds the entry for the unit that a cgroup belongs to. Returns 1 if there is one. */
TG_FUNCTION int tg_find_unit(__u64 cgroup, struct tg_unit *unit)
{
	struct tg_unit_name name = {};
	int read = tg_read_unit(cgroup, &name);

	if (!unit || !read)
		return 0;
	if (read < 0) {
		unit->flags = TG_UNIT_UNKNOWN;
		return 1;
	}
	struct tg_unit *known = bpf_map_lookup_elem(&units, &name.key);

	if (!known || (known->flags & TG_UNIT_TEMPLATE && name.tail != TG_TAIL_SERVICE))
		return 0;
	*unit = *known;
	return 1;
}

/*
 * The domain of a process of the machine in a cgroup that executes a file with this label.
 * Returns 1 if the unit decides, with the domain in `sid`; 0 if the policy decides; -EACCES if
 * the policy does not have the unit's context, or the unit is not known.
 */
TG_FUNCTION int tg_unit_domain(__u64 cgroup, __u32 file, __u32 *sid)
{
	struct tg_unit unit = {};

	if (!sid || !tg_find_unit(cgroup, &unit) || tg_is_executor(file))
		return 0;
	if (unit.flags & TG_UNIT_UNKNOWN) {
		tg_failed(TG_FAILED_UNIT);
		return READ_ONCE(state.enforcing) ? -EACCES : 0;
	}
	if (unit.flags & TG_UNIT_SEEN)
		tg_doorbell(TG_EVENT_SERVICE, 0, 0, 0);
	if (!unit.sid)
		return 0;
	*sid = unit.sid;
	return 1;
}

#endif
