/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network interfaces whose other end is a process. */
#ifndef TOLLGATE_PROGRAMS_TUN_H
#define TOLLGATE_PROGRAMS_TUN_H

#include "../ask.h"
#include "../cache.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../request.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

/* selinux_tun_dev_create: the interface has the SID of its maker. */
SEC("lsm/tun_dev_create") int BPF_PROG(tun_dev_create)
{
	__u64 subject = tg_direct_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = subject,
		.class = SECCLASS_TUN_SOCKET,
		.av = TUN_SOCKET__CREATE,
		.manager = TG_MANAGER_NETWORK,
	};

	return tg_ask(&request);
}

#endif
