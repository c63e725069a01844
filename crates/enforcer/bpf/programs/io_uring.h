/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* io_uring: who may use it, and what is done with another's credentials. */
#ifndef TOLLGATE_PROGRAMS_IO_URING_H
#define TOLLGATE_PROGRAMS_IO_URING_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../credential.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../object.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

/* selinux_uring_override_creds: the current task wants to act as the task that registered
 * `cred`. */
SEC("lsm/uring_override_creds") int BPF_PROG(uring_override_creds, const struct cred *cred)
{
	__u64 subject = tg_subject_by_call();

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
	return tg_ask(&request);
}

/* selinux_uring_sqpoll: a thread of the kernel is to poll for work. */
SEC("lsm/uring_sqpoll") int BPF_PROG(uring_sqpoll)
{
	return tg_ask_plainly(tg_subject_by_call(), TG_SELF, SECCLASS_IO_URING, IO_URING__SQPOLL,
			      TG_MANAGER_OTHER);
}

/* selinux_uring_allowed: io_uring_setup(2) as such; since 6.15 */
SEC("lsm/uring_allowed") int BPF_PROG(uring_allowed)
{
	return tg_ask_plainly(tg_subject_by_call(), TG_SELF, SECCLASS_IO_URING, IO_URING__ALLOWED,
			      TG_MANAGER_OTHER);
}

/* selinux_uring_cmd: a command to a file, similar to ioctl(2). */
SEC("lsm/uring_cmd") int BPF_PROG(uring_cmd, struct io_uring_cmd *command)
{
	__u64 subject = tg_subject_by_call();
	struct file *file = command->file;
	struct inode *inode;

	if (subject & TG_UNCONFINED)
		return 0;
	inode = file->f_inode;
	struct tg_request request = {
		.source = subject,
		.target = tg_object_of(inode).sid,
		.class = SECCLASS_IO_URING,
		.av = IO_URING__CMD,
		.manager = TG_MANAGER_OTHER,
		.object = TG_OBJECT_PATH,
		.inode = TG_ADDRESS(inode),
		.path = TG_ADDRESS(&file->f_path),
	};

	return tg_ask(&request);
}

#endif
