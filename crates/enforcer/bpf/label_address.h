/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels, by address, of objects with neither an inode nor storage. They are entered when the
 * object is made, and removed when it is freed. Objects of the machine have no entry.
 *
 * Some objects are freed by softirqs, which may have interrupted the holder of the map's
 * bucket lock. The entry then stays, until an object is made at the same address and replaces
 * it.
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

/* The label of the object at an address of the kernel's (TG_KERNEL_ADDRESS). NULL: it is the
 * machine's. */
static __always_inline struct tg_labelled *tg_find_labelled(__u64 address)
{
	return bpf_map_lookup_elem(&objects, &address);
}

static __always_inline __u32 tg_labelled_sid(const struct tg_labelled *found)
{
	return found ? found->sid : TG_SID_MACHINE;
}

/* The SID of the object at an address. */
static __always_inline __u32 tg_sid_at(__u64 address)
{
	return tg_labelled_sid(tg_find_labelled(address));
}

/* The object at an address is gone. */
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

/* Labels the object at an address. Returns 0 or -ENOMEM: then it counts as the machine's. */
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

/* Gives an object that the current task makes the task's label. Returns -ENOMEM if it could not
 * be recorded and the task is confined. */
static __noinline int tg_make_labelled(__u64 address, __u32 class)
{
	__u64 subject = tg_subject_by_call();

	if (!tg_put_labelled(address, subject & 0xffff, class) || subject & TG_UNCONFINED)
		return 0;
	return -ENOMEM;
}

#endif
