/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The status page: what is in force, for programs that cache decisions. It begins as SELinux's does
 * (struct selinux_kernel_status of security/selinux/include/security.h). The daemon alone writes
 * it, in TG_STATUS, and keeps the file when enforcement ends, so that who has mapped it sees that.
 */
#ifndef TOLLGATE_STATUS_H
#define TOLLGATE_STATUS_H

#include <linux/types.h>

#define TG_STATUS_VERSION 1u
#define TG_STATUS_SIZE 4096u
#define TG_STATUS_DOMAINS (TG_STATUS_SIZE / 4 - 6)

struct tg_status_page {
	__u32 version;
	__u32 sequence; /* odd while the page is written */
	__u32 enforcing;
	__u32 policyload; /* number of the generation in force; 0: nothing is enforced */
	__u32 deny_unknown;
	__u32 permissive;		 /* how many domains are permissive */
	__u32 domain[TG_STATUS_DOMAINS]; /* their types, as far as there is room: the others are
					      taken for enforcing */
};

#endif
