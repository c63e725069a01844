/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records checks, so that other caches can be compared with those that there are. */
#ifndef TOLLGATE_RECORD_H
#define TOLLGATE_RECORD_H

#include "cache.h"
#include "classes.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"

/* Checks that are counted pass the caches of files by, so all come here. */
static __noinline int tg_record(const struct tg_request *request)
{
	struct tg_asked *asked = bpf_ringbuf_reserve(&checks, sizeof *asked, 0);

	if (!asked)
		return 0;
	asked->inode = tg_is_hot(request->av, request->class == SECCLASS_DIR) ? request->inode : 0;
	asked->source = request->source;
	asked->target = request->target;
	asked->class = request->class;
	asked->reserved = 0;
	bpf_ringbuf_submit(asked, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
