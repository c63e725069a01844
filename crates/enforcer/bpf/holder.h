/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In whose share the current task takes something. */
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
 * The user whom a credential's uid belongs to. In a user namespace that is who made the outermost
 * one: with a range of subordinate uids he is still one user. Namespaces that root has made hold
 * different users.
 */
static __always_inline __u32 tg_user_of(const struct cred *cred)
{
	struct user_namespace *within = cred->user_ns;
	int level = within->level;
	__u32 own = cred->uid.val, owner;

	/* Read, before clang joins loads of different kinds of pointers to one. */
	TG_OPAQUE(own);
	if (__builtin_expect(!level, 1))
		return tg_main_user(own);
	/* 32 is the deepest that the kernel makes one. */
	for (__u32 i = 0; i < 32 && level > 1; i++) {
		within = BPF_CORE_READ(within, parent);
		level = BPF_CORE_READ(within, level);
	}
	owner = BPF_CORE_READ(within, owner.val);
	return owner ? tg_main_user(owner) : own;
}

/* The share of a subject of a user; `subject` with TG_UNCONFINED. */
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
