/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was granted on a socket, remembered in it: sending and receiving are checked at each
 * call, and nearly always the same task does the same again. An entry is a word
 *
 *   epoch 46 | permissions 2 | SID 16
 *
 * which is read and written at once, as those of the caches are (cache.h). It holds for this
 * subject, until the policy or a mode changes.
 */
#ifndef TOLLGATE_SOCKET_USE_H
#define TOLLGATE_SOCKET_USE_H

#include "ask.h"
#include "classes.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"
#include "subject.h"

#define TG_USE_READ (1ull << 16)
#define TG_USE_WRITE (1ull << 17)
#define TG_USES (TG_USE_READ | TG_USE_WRITE)

static __always_inline __u64 tg_use(__u64 epoch, __u64 subject)
{
	return epoch << 18 | (subject & 0xffff);
}

/* Whether the current task was granted this use. `subject` is its own SID, with TG_UNCONFINED. */
static __always_inline int tg_was_granted(const struct tg_sock *own, __u64 subject, __u64 use)
{
	if (READ_ONCE(state.overriding))
		subject = tg_acting_subject(subject);
	__u64 entry = tg_use(READ_ONCE(state.epoch), subject);

	if (((READ_ONCE(own->used) ^ entry) & (~TG_USES | use)) != use)
		return 0;
	tg_count_question(TG_MANAGER_SOCKET, 1);
	return 1;
}

/* Remembers what is granted without audit: a vector of permissions. `epoch` was read before that.
 */
static __always_inline void tg_remember_uses(struct tg_sock *own, __u64 subject, __u32 allowed,
					     __u64 epoch)
{
	__u64 uses = (allowed & SOCKET__READ ? TG_USE_READ : 0) |
		     (allowed & SOCKET__WRITE ? TG_USE_WRITE : 0);

	WRITE_ONCE(own->used, tg_use(epoch, subject) | uses);
}

/* When what sockets have been found to need for their labels must be found again. */
static __always_inline __u32 tg_labels_epoch(void)
{
	return (__u32)READ_ONCE(state.epoch) + READ_ONCE(state.namespaces_epoch) + 1;
}

#endif
