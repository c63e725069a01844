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
