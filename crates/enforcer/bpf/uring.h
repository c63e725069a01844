/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* io_uring: what is done with the credentials of somebody else. */
#ifndef TOLLGATE_URING_H
#define TOLLGATE_URING_H

#include "ask.h"
#include "subject.h"

/* selinux_uring_override_creds: the current task wants to act as who has registered `cred`. */
SEC("lsm/uring_override_creds") int BPF_PROG(uring_override_creds, const struct cred *cred)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = tg_cred_sid(TG_ADDRESS(cred)),
		.class = SECCLASS_IO_URING,
		.av = IO_URING__OVERRIDE_CREDS,
		.manager = TG_MANAGER_OTHER,
	};

	WRITE_ONCE(state.overriding, 1);
	return tg_ask(&request) ? -EACCES : 0;
}

#endif
