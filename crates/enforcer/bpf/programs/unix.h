/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets within the machine (AF_UNIX): which may connect to which. */
#ifndef TOLLGATE_PROGRAMS_UNIX_H
#define TOLLGATE_PROGRAMS_UNIX_H

#include "../address.h"
#include "../cache.h"
#include "../compiler.h"
#include "../contexts.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../socket_label.h"
#include "../state.h"
#include "../subject.h"
#include "../text.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "socket.h"
#include "tables.h"

/* The labels of a connection. Its end at the listening socket has that socket's label, with the
 * range of the connecting one. For an unconfined task this never fails. */
static __noinline int tg_join(struct sock *sk, struct sock *end, struct tg_socket *own,
			      struct tg_socket *listener)
{
	struct tg_socket new = {TG_SID_MACHINE, listener->class};

	if (tg_copy_range(listener->sid, own->sid, 0, &new.sid)) {
		if (!tg_is_unconfined(own->sid))
			return -EINVAL;
		new.sid = TG_SID_MACHINE;
	}
	if (new.sid != TG_SID_MACHINE)
		tg_make_text(new.sid, listener->sid, own->sid);
	if (tg_keep_peer(end, &new, own->sid) || tg_keep_peer(sk, own, new.sid))
		return tg_is_unconfined(own->sid) ? 0 : -ENOMEM;
	return 0;
}

/* selinux_socket_unix_stream_connect. The machine's connections to itself need no labels. */
SEC("lsm/unix_stream_connect")
int BPF_PROG(unix_stream_connect, struct sock *sk, struct sock *other, struct sock *end)
{
	tg_begin_sock(end);
	struct tg_socket own = tg_socket_of(sk), listener = tg_socket_of(other);
	int result = tg_ask_sock(&own, other, UNIX_STREAM_SOCKET__CONNECTTO);

	if (result || (own.sid == TG_SID_MACHINE && listener.sid == TG_SID_MACHINE))
		return result;
	return tg_join(sk, end, &own, &listener);
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
