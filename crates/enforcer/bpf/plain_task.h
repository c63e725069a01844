/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plain tasks: what task_alloc has copied for them is the SID of their parent, and the one
 * before its last exec. Most tasks never have more, so they have no storage, whose making and
 * freeing would cost more than all checks of a fork. state.plain is no cache: a task without a
 * place there gets storage at once, and one that needs more gets it then (tg_make_task).
 *
 * A place is written before the task runs, and freed after it is gone (task_free). If that is
 * missed, the next task at the address takes the place over.
 */
#ifndef TOLLGATE_PLAIN_TASK_H
#define TOLLGATE_PLAIN_TASK_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "state.h"

/* Both SIDs in one word, which is never 0. */
#define TG_PLAIN(sid, previous) ((__u64)(previous) << 16 | (sid))
#define TG_PLAIN_SID(plain) ((__u32)(plain)&0xffff)
#define TG_PLAIN_PREVIOUS(plain) ((__u32)(plain) >> 16 & 0xffff)

/* The places for a task, by its address as bpf_get_current_task has it. */
static __always_inline struct tg_plain_task *tg_plain_places(__u64 task)
{
	__u64 row = (__u32)task * 0x9e3779b1u >> (32 - TG_PLAIN_ROW_BITS);
	struct tg_plain_task *places = state.plain;

	places += row * TG_PLAIN_WAYS;
	TG_OPAQUE(places);
	return places;
}

static __always_inline struct tg_plain_task *tg_plain_place(__u64 task)
{
	struct tg_plain_task *places = tg_plain_places(task);

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++)
		if (READ_ONCE(places[way].task) == task)
			return &places[way];
	return 0;
}

/* What is known of a plain task (TG_PLAIN); 0: it is not plain. */
TG_FUNCTION __u64 tg_find_plain(__u64 task)
{
	struct tg_plain_task *place = tg_plain_place(task);

	return place ? READ_ONCE(place->sids) : 0;
}

/* Makes a task plain, or writes down what has changed in one that is. Returns 0 if there is no
 * place. */
TG_FUNCTION int tg_put_plain(__u64 task, __u64 sids)
{
	struct tg_plain_task *place = tg_plain_place(task), *places = tg_plain_places(task);

	for (__u32 way = 0; way < TG_PLAIN_WAYS && !place; way++)
		if (!__sync_val_compare_and_swap(&places[way].task, 0, task))
			place = &places[way];
	if (!place)
		return 0;
	WRITE_ONCE(place->sids, sids);
	return 1;
}

/* The task is gone, or has storage. */
TG_FUNCTION int tg_forget_plain(__u64 task)
{
	struct tg_plain_task *place = tg_plain_place(task);

	if (!place)
		return 0;
	WRITE_ONCE(place->sids, 0);
	WRITE_ONCE(place->task, 0);
	return 0;
}

#endif
