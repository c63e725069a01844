/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels of what has neither an inode nor storage, by address: entered where it is made, removed
 * where it is freed. The machine's objects have no entry.
 *
 * Some are freed by softirqs, which may find the map's bucket locked by who they interrupted: the
 * entry stays then, and whoever makes something at that address puts it right.
 */
#ifndef TOLLGATE_LABEL_ADDRESS_H
#define TOLLGATE_LABEL_ADDRESS_H

#include "cache.h"
#include "compiler.h"
#include "enforcer.h"
#include "holder.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "share.h"
#include "state.h"
#include "subject.h"

/* The label of what is at an address of the kernel's (TG_KERNEL_ADDRESS). */
static __always_inline struct tg_labelled tg_find_labelled(__u64 address)
{
	struct tg_labelled *found = bpf_map_lookup_elem(&objects, &address);

	return found ? *found : (struct tg_labelled){.sid = TG_SID_MACHINE};
}

/* What was at an address is gone. */
static __noinline int tg_forget_labelled(__u64 address)
{
	struct tg_labelled *known = bpf_map_lookup_elem(&objects, &address);
	__u32 share = known ? known->share : 0;
	long error = known ? bpf_map_delete_elem(&objects, &address) : -ENOENT;

	if (!error)
		tg_give(TG_ROOM_OBJECTS, share);
	else if (error != -ENOENT)
		WRITE_ONCE(state.objects_left, 1);
	return 0;
}

/* Labels what is at an address. 0 or -ENOMEM: it counts as the machine's. */
static __noinline int tg_put_labelled(__u64 address, __u32 sid, __u32 class)
{
	struct tg_labelled label = {.sid = sid, .class = class};

	tg_forget_labelled(address);
	if (sid == TG_SID_MACHINE)
		return 0;
	label.share = tg_own_share();
	if (tg_take(TG_ROOM_OBJECTS, label.share))
		return -ENOMEM;
	if (!bpf_map_update_elem(&objects, &address, &label, BPF_ANY))
		return 0;
	tg_give(TG_ROOM_OBJECTS, label.share);
	tg_failed(TG_FAILED_OBJECTS_FULL);
	return -ENOMEM;
}

/* What the current task makes has its label. -ENOMEM: nobody would know, and the task is asked
 * questions. */
static __noinline int tg_make_labelled(__u64 address, __u32 class)
{
	__u64 subject = tg_subject();

	if (!tg_put_labelled(address, subject & 0xffff, class) || subject & TG_UNCONFINED)
		return 0;
	return -ENOMEM;
}

#endif
