/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What changes a directory: objects that are made, linked, renamed, removed. */
#ifndef TOLLGATE_DIRECTORY_H
#define TOLLGATE_DIRECTORY_H

#include "object.h"

static __always_inline int tg_ask_about(__u32 source, __u32 target, __u32 class, __u32 av,
					__u32 manager, struct dentry *dentry)
{
	struct tg_request request = {
		.source = source,
		.target = target,
		.class = class,
		.av = av,
		.manager = manager,
		.object = TG_OBJECT_INODE,
		.dentry = TG_ADDRESS(dentry),
	};

	return tg_ask(&request) ? -EACCES : 0;
}

#endif
