/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers: a process of the machine that executes a program in the cgroup of a container, or
 * below it, gets the container's context. This is how the runtime starts a container's first
 * program, and later ones (`exec`). The cgroup is recognized by its number, which nobody can
 * choose.
 */
#ifndef TOLLGATE_CONTAINER_H
#define TOLLGATE_CONTAINER_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node___container {
	__u64 id;
};

struct cgroup___container {
	int level;
	struct kernfs_node___container *kn;
	struct cgroup___container *ancestors[1];
};

#pragma clang attribute pop

/* The number of an ancestor of a cgroup, or of itself. */
static __always_inline __u64 tg_cgroup_number(__u64 cgroup, __u32 level)
{
	__u64 at = cgroup + bpf_core_field_offset(struct cgroup___container, ancestors);
	struct cgroup___container *ancestor = 0;

	bpf_probe_read_kernel(&ancestor, sizeof ancestor, (void *)(at + level * sizeof ancestor));
	return BPF_CORE_READ(ancestor, kn, id);
}

/* The domain of the container that a cgroup, by its address, belongs to; 0: to none. A container
 * within a container belongs to the outer one. */
TG_FUNCTION __u32 tg_container_domain(__u64 cgroup)
{
	__u32 last = BPF_CORE_READ((struct cgroup___container *)cgroup, level);

	for (__u32 level = 1; level <= TG_CONTAINER_DEPTH; level++) {
		if (level > last)
			return 0;
		__u64 number = tg_cgroup_number(cgroup, level);
		struct tg_container *known = bpf_map_lookup_elem(&containers, &number);

		if (known)
			return known->sid;
	}
	return 0;
}

#endif
