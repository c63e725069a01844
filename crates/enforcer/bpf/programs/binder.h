/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binder: Android's calls between processes, by the credentials that both had when they opened
 * its device. */
#ifndef TOLLGATE_PROGRAMS_BINDER_H
#define TOLLGATE_PROGRAMS_BINDER_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../credential.h"
#include "../descriptor.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../scratch.h"
#include "../subject.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"

/* cred_sid, with TG_UNCONFINED */
TG_FUNCTION __u64 tg_cred_subject(__u64 address)
{
	__u32 sid = tg_cred_sid(address);

	return tg_is_unconfined(sid) ? sid | TG_UNCONFINED : sid;
}

static __always_inline int tg_ask_binder(__u64 subject, __u32 target, __u32 av)
{
	return tg_ask_plainly(subject, target, SECCLASS_BINDER, av, TG_MANAGER_IPC);
}

/* selinux_binder_set_context_mgr */
SEC("lsm/binder_set_context_mgr")
int BPF_PROG(binder_set_context_mgr, const struct cred *manager)
{
	return tg_ask_binder(tg_subject(), tg_cred_sid(TG_ADDRESS(manager)),
			     BINDER__SET_CONTEXT_MGR);
}

/* selinux_binder_transaction */
SEC("lsm/binder_transaction")
int BPF_PROG(binder_transaction, const struct cred *from, const struct cred *to)
{
	__u64 own = tg_subject(), caller = tg_cred_subject(TG_ADDRESS(from));

	if (own != caller && tg_ask_binder(own, caller & 0xffff, BINDER__IMPERSONATE))
		return -EACCES;
	return tg_ask_binder(caller, tg_cred_sid(TG_ADDRESS(to)), BINDER__CALL);
}

/* selinux_binder_transfer_binder */
SEC("lsm/binder_transfer_binder")
int BPF_PROG(binder_transfer_binder, const struct cred *from, const struct cred *to)
{
	return tg_ask_binder(tg_cred_subject(TG_ADDRESS(from)), tg_cred_sid(TG_ADDRESS(to)),
			     BINDER__TRANSFER);
}

/* selinux_binder_transfer_file: checked as if the receiver inherited the descriptor. */
SEC("lsm/binder_transfer_file")
int BPF_PROG(binder_transfer_file, const struct cred *from, const struct cred *to,
	     const struct file *file)
{
	__u64 receiver = tg_cred_subject(TG_ADDRESS(to));
	struct tg_scratch *scratch;
	int result;

	if (receiver & TG_UNCONFINED)
		return 0;
	scratch = tg_take_scratch();
	if (!scratch)
		return -EACCES;
	result = tg_inherit(receiver, TG_KERNEL_ADDRESS(file), scratch);
	tg_give_scratch(scratch);
	return result ? -EACCES : 0;
}

#endif
