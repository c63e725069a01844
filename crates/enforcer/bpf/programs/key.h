/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys and keyrings (security/keys). */
#ifndef TOLLGATE_PROGRAMS_KEY_H
#define TOLLGATE_PROGRAMS_KEY_H

#include "../address.h"
#include "../argument.h"
#include "../ask.h"
#include "../cache.h"
#include "../credential.h"
#include "../kernel.h"
#include "../label_address.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

/* selinux_key_alloc: a key has the label of its maker, or the one that was set for keys. */
SEC("lsm/key_alloc") int BPF_PROG(key_alloc, struct key *key, const struct cred *cred)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tg_task *task = bpf_task_storage_get(&tasks, current, 0, 0);
	__u32 sid = tg_cred_sid(TG_ADDRESS(cred));

	if (task && task->key_create_sid && cred == current->cred)
		sid = task->key_create_sid;
	if (!tg_put_labelled(TG_KERNEL_ADDRESS(key), sid, SECCLASS_KEY) ||
	    tg_task_subject() & TG_UNCONFINED)
		return 0;
	return -ENOMEM;
}

/* Linux 6.12 and later have no such hook: the program is attached to the function that would
 * call it. */
SEC("fentry/security_key_free") int BPF_PROG(key_free, struct key *key)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(key));
	return 0;
}

enum key_need_perm { /* include/linux/key.h */
		     KEY_NEED_VIEW = 1,
		     KEY_NEED_SETATTR = 6,
};
#define TG_KEY_AV(need) (1u << ((need)-KEY_NEED_VIEW))
_Static_assert(KEY__VIEW == TG_KEY_AV(KEY_NEED_VIEW) && KEY__SETATTR == TG_KEY_AV(KEY_NEED_SETATTR),
	       "classes.txt");
#define TG_KEY_POSSESSED 1ull /* flag in a reference, beside the key's address */

/*
 * selinux_key_permission(key_ref_t, const struct cred *, enum key_need_perm). Needs other than
 * these require no permission. The verifier does not let a program load a reference, whose
 * type has no members, so a helper reads it.
 */
SEC("lsm/key_permission") int key_permission(unsigned long long *ctx)
{
	const struct cred *cred = TG_ARGUMENT(ctx, 1);
	__u32 need = (__u32)(__u64)TG_ARGUMENT(ctx, 2), sid = tg_cred_sid(TG_ADDRESS(cred));
	__u64 key = 0;

	if (need < KEY_NEED_VIEW || need > KEY_NEED_SETATTR || tg_is_unconfined(sid))
		return 0;
	if (bpf_get_func_arg(ctx, 0, &key))
		return -EACCES;
	return tg_ask_plainly(sid, tg_sid_at(key & ~TG_KEY_POSSESSED), SECCLASS_KEY,
			      TG_KEY_AV(need), TG_MANAGER_KEY);
}

/* selinux_watch_key */
SEC("lsm/watch_key") int BPF_PROG(watch_key, struct key *key)
{
	return tg_ask_plainly(tg_direct_subject(), tg_sid_at(TG_KERNEL_ADDRESS(key)), SECCLASS_KEY,
			      KEY__VIEW, TG_MANAGER_KEY);
}

#endif
