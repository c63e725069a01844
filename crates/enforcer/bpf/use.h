/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was granted on an object, remembered in it: sockets and message queues are checked at
 * each call, and nearly always the same task does the same again. An entry is a word
 *
 *   epoch 45 | uses 3 | SID 16
 *
 * which is read and written at once, as those of the caches are (cache.h). It holds for this
 * subject, until the policy or a mode changes.
 */
#ifndef TOLLGATE_USE_H
#define TOLLGATE_USE_H

#include "compiler.h"
#include "libbpf.h"
#include "state.h"

#define TG_USE_READ (1ull << 16)
#define TG_USE_WRITE (1ull << 17)
#define TG_USE_MESSAGE (1ull << 18) /* of a queue: a message that has the label of its messages */
#define TG_USES (TG_USE_READ | TG_USE_WRITE | TG_USE_MESSAGE)

static __always_inline __u64 tg_use(__u64 epoch, __u64 subject)
{
	return epoch << 19 | (subject & 0xffff);
}

/* Whether a subject was granted these uses, without audit. */
static __always_inline int tg_has_use(const __u64 *used, __u64 subject, __u64 uses)
{
	__u64 entry = tg_use(READ_ONCE(state.epoch), subject) | uses;

	return !((READ_ONCE(*used) ^ entry) & (~TG_USES | uses));
}

/* Remembers uses, beside those that the subject had. `epoch` was read before they were granted.
 * What another processor has forgotten meanwhile stays forgotten. */
static __always_inline void tg_remember_uses(__u64 *used, __u64 subject, __u64 uses, __u64 epoch)
{
	__u64 entry = tg_use(epoch, subject), known = READ_ONCE(*used);

	if (!((known ^ entry) & ~TG_USES))
		entry = known;
	__sync_val_compare_and_swap(used, known, entry | uses);
}

#endif
