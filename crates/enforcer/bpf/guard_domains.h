/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the object managers tell the guard: who enters a domain that the policy marks as guarded. */
#ifndef TOLLGATE_GUARD_DOMAINS_H
#define TOLLGATE_GUARD_DOMAINS_H

#include "libbpf.h"

/*
 * Threads that are executing something, by their addresses, and that enter such a domain by it.
 * Writer: the object managers, at bprm_creds_for_exec, which comes before all hooks of the guard.
 * Reader: the guard, which removes the entry.
 * Size: as guard_processes. Full, or no memory: the exec fails.
 */
struct tg_guard_domains {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, __u64);
	__type(value, __u32);
};

#endif
