/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What subjects may do to a unix socket, remembered in the access cache under the address of its
 * sock, as what they may do to an inode is under that of the inode: whether every live confined
 * subject may read, or write. The label of a sock never changes. Its row is cleared when it is made
 * (socket_post_create; at an accepted end unix_stream_connect), before it has one.
 *
 * Other sockets have no rows: an accepted connection of theirs is made where no program is
 * attached.
 */
#ifndef TOLLGATE_SOCKET_ACCESS_H
#define TOLLGATE_SOCKET_ACCESS_H

#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "object.h"
#include "request.h"
#include "socket_class.h"
#include "state.h"

/* The permissions as the access cache has them. */
enum tg_socket_place { TG_SOCKET_READ = 1, TG_SOCKET_WRITE = 2 };

static __always_inline int tg_all_may_use(struct sock *sk, enum tg_socket_place place)
{
	return sk->__sk_common.skc_family == PF_UNIX &&
	       tg_hit(TG_KEY(sk), TG_ANY_WAY, READ_ONCE(state.any), place);
}

/* Stores what all may do to a sock, of which `request` was just granted one thing. `epoch` was read
 * before that. */
static __always_inline void tg_remember_socket_access(struct tg_request *request, struct sock *sk,
						      __u32 epoch)
{
	__u64 any = READ_ONCE(state.any), places;
	__u32 allowed = request->allowed;

	if (!any || READ_ONCE(state.statistics) || request->source == TG_SID_CANARY ||
	    sk->__sk_common.skc_family != PF_UNIX)
		return;
	/* sock_skip_has_perm: everybody may. */
	if (request->target != SECINITSID_KERNEL)
		allowed = tg_any_allowed(request, request->source, allowed);
	places = (allowed & SOCKET__READ ? TG_SOCKET_READ : 0) |
		 (allowed & SOCKET__WRITE ? TG_SOCKET_WRITE : 0);
	tg_remember_access(TG_KEY(sk), TG_ANY_WAY, any, places, epoch);
}

#endif
