/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts a database in force, and the policy that belongs to it, by one system call. A signal ends a
 * process only between two: whenever the daemon is killed, both are of one generation.
 */
#ifndef TOLLGATE_GUARD_SWITCH_H
#define TOLLGATE_GUARD_SWITCH_H

#include "maps.h"
#include "../compiler.h"
#include "../libbpf.h"
#include "guard.h"

/* Puts a map at a place of a map of maps, as bpf(2) does. */
static __always_inline int tg_guard_put(__u32 maps, __u32 place, __u32 map)
{
	/* The members of union bpf_attr for this command; bpf(2) takes shorter ones, too. */
	struct {
		__u32 maps, unused;
		__u64 key, value, flags;
	} attributes = {
		.maps = maps,
		.key = (__u64)&place,
		.value = (__u64)&map,
		.flags = BPF_ANY,
	};

	return bpf_sys_bpf(BPF_MAP_UPDATE_ELEM, &attributes, sizeof attributes);
}

SEC("syscall") int guard_switch(struct tg_guard_switch *wanted)
{
	int failed = tg_guard_put(wanted->tables, 0, wanted->table);

	if (!failed && wanted->has_policy) {
		failed = tg_guard_put(wanted->generations, wanted->place, wanted->generation);
		if (failed)
			tg_guard_put(wanted->tables, 0, wanted->before);
	}
	if (!failed) {
		WRITE_ONCE(guard_state.daemons, wanted->daemons);
		for (__u32 word = 0; word < TG_GUARD_WORDS; word++)
			guard_state.database[word] = wanted->database[word];
	}
	wanted->result = failed;
	return 0;
}

#endif
