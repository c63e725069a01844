/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets within the machine (AF_UNIX): which may connect to which. */
#ifndef TOLLGATE_PROGRAMS_UNIX_H
#define TOLLGATE_PROGRAMS_UNIX_H

#include "../compiler.h"
#include "../contexts.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../socket_label.h"
#include "../state.h"
#include "../subject.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "socket.h"
#include "tables.h"

/* security_sid_mls_copy: the SID of a context with the range of another. Returns 0 or -EINVAL. */
TG_FUNCTION int tg_copy_range(__u32 sid, __u32 ranged, __u32 *copy)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!generation || !copy) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return -EINVAL;
	}
	struct tg_context context = tg_context_of(generation, sid);
	struct tg_context range = tg_context_of(generation, ranged);

	*copy = sid;
	if (!context.type || !range.type) {
		tg_failed(TG_FAILED_NO_CONTEXT);
		return -EINVAL;
	}
	if (context.low == range.low && context.high == range.high)
		return 0;
	context.low = range.low;
	context.high = range.high;
	if (!tg_valid(&generation->tables, &generation->levels, &context,
		      tg_level(&generation->levels, context.low),
		      tg_level(&generation->levels, context.high))) {
		tg_failed(TG_FAILED_NEW_LABEL);
		if (READ_ONCE(state.enforcing))
			return -EINVAL;
	}
	return tg_intern(generation, &context, copy) ? -EINVAL : 0;
}

/* The label of the listener's end of a connection: the listener's label with the range of the
 * connecting task. */
static __noinline int tg_put_end_label(struct sock *sk, struct tg_socket *listener,
				       __u32 connecting)
{
	__u32 sid = TG_SID_MACHINE;

	if (listener->sid == TG_SID_MACHINE && connecting == TG_SID_MACHINE)
		return 0;
	if (tg_copy_range(listener->sid, connecting, &sid))
		return tg_is_unconfined(connecting) ? 0 : -EINVAL;
	if (sid == TG_SID_MACHINE || !tg_put_sock_label(sk, sid, listener->class))
		return 0;
	return tg_is_unconfined(connecting) ? 0 : -ENOMEM;
}

/* selinux_socket_unix_stream_connect */
SEC("lsm/unix_stream_connect")
int BPF_PROG(unix_stream_connect, struct sock *sk, struct sock *other, struct sock *end)
{
	struct tg_socket own = tg_socket_of(sk), listener = tg_socket_of(other);
	int result = tg_ask_sock(&own, other, UNIX_STREAM_SOCKET__CONNECTTO);

	return result ? result : tg_put_end_label(end, &listener, own.sid);
}

/* selinux_socket_unix_may_send */
SEC("lsm/unix_may_send")
int BPF_PROG(unix_may_send, struct socket *socket, struct socket *other)
{
	struct sock *sk = socket->sk, *target = other->sk;

	if (!sk || !target)
		return 0;
	struct tg_socket own = tg_socket_of(sk);

	return tg_ask_sock(&own, target, SOCKET__SENDTO);
}

#endif
