/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peer's context, which getsockopt(SO_PEERSEC) returns. A program at the hook cannot write to
 * the caller, so this one is attached to the root cgroup: it sees the answers to all calls of
 * getsockopt(2), and may replace them.
 */
#ifndef TOLLGATE_PROGRAMS_PEER_H
#define TOLLGATE_PROGRAMS_PEER_H

#include "../compiler.h"
#include "../doorbell.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../plain_socket.h"
#include "../socket_class.h"
#include "../state.h"
#include "classes.h"
#include "enforcer.h"

#define SOL_SOCKET 1
#define SO_PEERSEC 31

/* Whether getsockopt(SO_PEERSEC) can tell the peer of such a socket: a unix socket that is
 * connected, or one of TCP or SCTP. */
static __always_inline int tg_has_peer(struct bpf_sock *sk)
{
	if (sk->type != SOCK_STREAM && sk->type != SOCK_SEQPACKET)
		return 0;
	switch (sk->family) {
	case PF_UNIX:
		return 1;
	case PF_INET:
	case PF_INET6:
		return sk->protocol == IPPROTO_TCP || sk->protocol == IPPROTO_SCTP ||
		       sk->protocol == IPPROTO_MPTCP;
	}
	return 0;
}

/* The SID of the other end; 0: there is none, or it is not known. A socket that was not connected
 * counts as in SELinux (selinux_sk_alloc_security), and packets without a label tell nothing. Where
 * neither end of a unix connection has a label, the machine has connected to itself. */
static __always_inline __u32 tg_peer_of(struct bpf_sock *sk)
{
	struct tg_sock *found = tg_sock_of(sk);
	struct tg_socket *kept = found ? &found->label : 0;

	if (!tg_has_peer(sk))
		return 0;
	if (kept && kept->peer && kept->peer != SECINITSID_UNLABELED)
		return kept->peer;
	if (sk->state == BPF_TCP_CLOSE || sk->state == BPF_TCP_LISTEN)
		return SECINITSID_UNLABELED;
	if (sk->family != PF_UNIX)
		return 0;
	return kept ? SECINITSID_UNLABELED : TG_SID_MACHINE;
}

/* The text of a context, if it is known and there is room for it. The daemon is told of a SID that
 * has none. */
static __always_inline struct tg_text *tg_text_of(__u32 sid, __u64 room)
{
	struct tg_text *text = sid ? bpf_map_lookup_elem(&texts, &sid) : 0;

	if (sid && !text)
		tg_doorbell(TG_EVENT_SID, sid, 0, 0);
	return text && text->length && text->length <= room ? text : 0;
}

/* Copies a text to what the caller is given, up to whose end the rest is zeros. */
static __always_inline void tg_copy_text(struct bpf_sockopt *option, struct tg_text *text)
{
	char *to = option->optval, *end = option->optval_end;
	__u32 word = 0;

	for (; word < TG_TEXT_WORDS && to + sizeof(__u64) <= end; word++, to += sizeof(__u64))
		*(__u64 *)to = text->words[word];
	if (word >= TG_TEXT_WORDS)
		return;
	const char *rest = (const char *)&text->words[word];

	for (__u32 byte = 0; byte < sizeof(__u64) && to + 1 <= end; byte++, to++)
		*to = rest[byte];
}

/*
 * selinux_socket_getpeersec_stream. What another module has answered stays. Before 6.8, bpf itself
 * answers with success and nothing else, if no other module does.
 *
 * Whoever has a buffer that is too small gets ENOPROTOOPT, and not ERANGE: with an error no length
 * can be returned, and callers that expect one would ask again for ever (getpeersec of systemd).
 * So does whoever asks for a context that the daemon has not told yet: that is the one error that
 * all callers expect, and it grants nothing.
 */
static __always_inline void tg_tell_peer(struct bpf_sockopt *option)
{
	__s32 answered = option->retval;
	__u64 room = (char *)option->optval_end - (char *)option->optval;

	if (answered ? answered != -ENOPROTOOPT : !tg_kernel.peers_untold)
		return;
	struct tg_text *text = tg_text_of(tg_peer_of(option->sk), room);

	/* Two stores of 32 bits: the verifier refuses one of both. */
	if (text) {
		tg_copy_text(option, text);
		WRITE_ONCE(option->optlen, text->length);
		barrier();
	}
	WRITE_ONCE(option->retval, text ? 0 : -ENOPROTOOPT);
}

/* The kernel lets programs see no more than a page of an answer, and rejects what is longer than
 * that unless a program sets its length to 0. */
SEC("cgroup/getsockopt") int socket_getpeersec_stream(struct bpf_sockopt *option)
{
	if (option->level == SOL_SOCKET && option->optname == SO_PEERSEC)
		tg_tell_peer(option);
	else if (option->optlen > (char *)option->optval_end - (char *)option->optval)
		WRITE_ONCE(option->optlen, 0);
	return 1;
}

#endif
