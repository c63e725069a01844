/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The share in which the current task takes places. */
#ifndef TOLLGATE_HOLDER_H
#define TOLLGATE_HOLDER_H

#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "share.h"
#include "subject.h"

/*
 * The user to whom a credential's uid belongs. In a user namespace it is the user who made the
 * outermost one: with a range of subordinate uids it is still one user. Namespaces that root
 * has made contain different users.
 */
static __always_inline __u32 tg_user_of(const struct cred *cred)
{
	struct user_namespace *within = cred->user_ns;
	int level = within->level;
	__u32 own = cred->uid.val, owner;

	/* It is read before clang joins loads of different kinds of pointers into one. */
	TG_OPAQUE(own);
	if (__builtin_expect(!level, 1))
		return tg_main_user(own);
	/* The kernel nests user namespaces at most 32 deep. */
	for (__u32 i = 0; i < 32 && level > 1; i++) {
		within = BPF_CORE_READ(within, parent);
		level = BPF_CORE_READ(within, level);
	}
	owner = BPF_CORE_READ(within, owner.val);
	return owner ? tg_main_user(owner) : own;
}

/* The share of a subject of a user; `subject` includes TG_UNCONFINED. */
static __always_inline __u32 tg_share_for(__u32 user, __u64 subject)
{
	if (user)
		return tg_share_of(TG_HOLDERS_USERS, user, 1);
	if (subject & TG_UNCONFINED)
		return TG_HOLDERS_MACHINE;
	return tg_share_of(TG_HOLDERS_DOMAINS, subject & 0xffff, 1);
}

TG_FUNCTION __u32 tg_own_share(void)
{
	return tg_share_for(tg_user_of(bpf_get_current_task_btf()->real_cred), tg_task_subject());
}

#endif
