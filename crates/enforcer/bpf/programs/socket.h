/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets: how they are made, and what is done with them. */
#ifndef TOLLGATE_PROGRAMS_SOCKET_H
#define TOLLGATE_PROGRAMS_SOCKET_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../doorbell.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../plain_socket.h"
#include "../request.h"
#include "../socket_access.h"
#include "../socket_class.h"
#include "../socket_label.h"
#include "../subject.h"
#include "../transition.h"
#include "../use.h"
#include "classes.h"
#include "enforcer.h"

/* Whether the current task was granted this use of a socket. `subject` is its own SID, with
 * TG_UNCONFINED. */
static __always_inline int tg_was_granted(const struct tg_sock *own, __u64 subject, __u64 use)
{
	if (READ_ONCE(state.overriding))
		subject = tg_acting_subject(subject);
	if (!tg_has_use(&own->used, subject, use))
		return 0;
	tg_count_question(TG_MANAGER_SOCKET, 1);
	return 1;
}

/* A clone whose label was lost looks like a sock of the machine's (tg_label_clone). */
static __always_inline __u32 tg_sid_without_label(void)
{
	return READ_ONCE(state.clones_lost) ? SECINITSID_UNLABELED : TG_SID_MACHINE;
}

/* sock_has_perm: checks whether the current task may do `av` to a sock. */
static __noinline int tg_check_sock(struct sock *sk, __u32 av)
{
	__u64 epoch = READ_ONCE(state.epoch), subject = tg_task_subject();
	__u64 use = av == SOCKET__READ ? TG_USE_READ : av == SOCKET__WRITE ? TG_USE_WRITE : 0;

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_sock *kept = tg_sock_of(sk);

	if (kept && use && tg_was_granted(kept, subject, use))
		return 0;
	subject = tg_acting_subject(subject);
	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = kept ? kept->label.sid : tg_sid_without_label(),
		.class = kept ? kept->label.class : tg_sock_class(TG_KERNEL_ADDRESS(sk)),
		.av = av,
		.manager = TG_MANAGER_SOCKET,
		.object = TG_OBJECT_SOCKET,
		.sock = TG_ADDRESS(sk),
	};

	if (request.target == SECINITSID_KERNEL) /* sock_skip_has_perm */
		request.allowed = SOCKET__READ | SOCKET__WRITE;
	else if (tg_ask(&request))
		return -EACCES;
	if (!kept)
		return 0;
	tg_remember_uses(&kept->used, subject,
			 (request.allowed & SOCKET__READ ? TG_USE_READ : 0) |
				 (request.allowed & SOCKET__WRITE ? TG_USE_WRITE : 0),
			 epoch);
	if (use)
		tg_remember_socket_access(&request, sk, epoch);
	return 0;
}

/* Likewise for a socket. A closed socket has no sock. */
static __always_inline int tg_check_socket(struct socket *socket, __u32 av)
{
	struct sock *sk = socket->sk;

	if (!sk || tg_task_subject() & TG_UNCONFINED)
		return 0;
	return tg_check_sock(sk, av);
}

/* Checks what one sock does to another: its own SID is the source. An unconfined one is not
 * checked. */
static __noinline int tg_ask_sock(struct tg_socket *own, struct sock *other, __u32 av)
{
	if (own->sid == TG_SID_MACHINE)
		return 0;
	struct tg_socket target = tg_socket_of(other);

	if (tg_is_cached(own->sid, target.sid, target.class, av) || tg_is_unconfined(own->sid))
		return 0;
	struct tg_request request = {
		.source = own->sid,
		.target = target.sid,
		.class = target.class,
		.av = av,
		.manager = TG_MANAGER_SOCKET,
		.object = TG_OBJECT_SOCKET,
		.sock = TG_ADDRESS(other),
	};

	return tg_ask(&request);
}

/* socket_sockcreate_sid: the SID of a socket that the current task makes. Returns 0 or -EACCES. */
static __always_inline int tg_new_socket_sid(__u32 subject, __u32 class, __u32 *sid)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (task && task->socket_create_sid) {
		*sid = task->socket_create_sid;
		return 0;
	}
	return tg_verdict_of(tg_transition(subject, subject, class, 0, sid));
}

/* selinux_socket_create */
static __noinline int tg_check_create(__u32 subject, __u32 class)
{
	struct tg_request request = {
		.source = subject,
		.class = class,
		.av = SOCKET__CREATE,
		.manager = TG_MANAGER_SOCKET,
	};

	if (tg_new_socket_sid(subject, class, &request.target))
		return -EACCES;
	return tg_ask(&request);
}

SEC("lsm/socket_create")
int BPF_PROG(socket_create, int family, int type, int protocol, int kernel)
{
	__u64 subject = tg_subject();

	if (kernel || subject & TG_UNCONFINED)
		return 0;
	/* Its packets do not pass the programs that put labels into them. */
	if (family == PF_XDP && tg_is_labelling())
		return -EACCES;
	return tg_check_create(subject, tg_family_class(family, type, protocol));
}

/* Labels a sock that the current task has made. For an unconfined task this never fails:
 * without a label, the sock counts as the machine's. */
static __noinline int tg_make_sock_label(struct sock *sk, __u32 class)
{
	__u64 subject = tg_subject();
	__u32 sid = TG_SID_MACHINE, confined = !(subject & TG_UNCONFINED);

	if (tg_new_socket_sid(subject & 0xffff, class, &sid))
		return confined ? -EACCES : 0;
	if (sid == TG_SID_MACHINE || !tg_make_sock(sk, sid, class, 0))
		return 0;
	return confined ? -ENOMEM : 0;
}

/* The daemon enters this many namespaces per second. */
#define TG_MEETINGS 64u

/* Tells the daemon about a namespace, unless it was just told. Returns whether it knows of it.
 * `process` has a socket there, and may be elsewhere by now; 0: none is known. */
static __always_inline int tg_tell_namespace(struct net *net, __u32 process)
{
	__u64 cookie = net->net_cookie, now = bpf_ktime_get_boot_ns(), second = now / 1000000000;
	__u64 *place = &state.met[cookie & (TG_MET - 1)];
	__u64 told = cookie << 32 | (__u32)(now / TG_MEET_PAUSE);

	if (READ_ONCE(*place) == told)
		return 1;
	/* Two processors may both begin a second. */
	if (READ_ONCE(state.met_second) != second) {
		WRITE_ONCE(state.met_second, second);
		WRITE_ONCE(state.met_count, 0);
	}
	if (__sync_fetch_and_add(&state.met_count, 1) >= TG_MEETINGS)
		return 0;
	WRITE_ONCE(*place, told);
	tg_ring(TG_EVENT_NAMESPACE, 0, net->ns.inum, cookie, process);
	return 1;
}

static __always_inline int tg_has_packets(__u32 family)
{
	return family == PF_INET || family == PF_INET6 || family == PF_PACKET;
}

/*
 * Tells the daemon that a task uses a network namespace in which packets have no labels yet. If
 * there is no room for another namespace, a confined task gets no socket in it: its packets would
 * leave without labels.
 */
static __noinline int tg_meet_namespace(struct sock *sk)
{
	struct net *net = sk->__sk_common.skc_net.net;
	__u64 cookie = net->net_cookie;
	__u32 full = READ_ONCE(state.namespaces_full);

	if (!tg_is_labelling() || bpf_map_lookup_elem(&namespaces, &cookie))
		return 0;
	if (full < TG_NAMESPACES_HALF + !net->user_ns->level &&
	    tg_tell_namespace(net, bpf_get_current_pid_tgid() >> 32))
		return 0;
	tg_failed(TG_FAILED_NAMESPACES);
	return tg_subject() & TG_UNCONFINED ? 0 : -EACCES;
}

/*
 * A confined socket neither sends nor receives in a namespace in which packets have no labels yet.
 * The daemon is told again, because the first time it may not have found the namespace. Where the
 * loopback device is the only one, packets go nowhere else. Returns 0 or -EAGAIN.
 */
static __noinline int tg_await_labels(struct sock *sk, __u32 process)
{
	struct tg_sock *kept = tg_sock_of(sk);
	__u32 epoch = tg_labels_epoch();

	if (!kept || kept->label.labelled == epoch || kept->label.sid == TG_SID_MACHINE)
		return 0;
	/* It was made before packets had labels. */
	if (tg_is_labelling() && tg_settle_sock(sk))
		return -EAGAIN;
	kept = tg_sock_of(sk);
	if (!kept)
		return -EAGAIN;
	struct tg_socket *own = &kept->label;
	struct net *net = sk->__sk_common.skc_net.net;
	__u64 cookie = net->net_cookie;

	if (!tg_has_packets(sk->__sk_common.skc_family) || !tg_is_labelling() ||
	    bpf_map_lookup_elem(&namespaces, &cookie)) {
		WRITE_ONCE(own->labelled, epoch);
		return 0;
	}
	if (tg_is_unconfined(own->sid))
		return 0;
	tg_tell_namespace(net, process);
	if (net->dev_base_head.next == net->dev_base_head.prev)
		return 0;
	tg_failed(TG_FAILED_AWAITED);
	return -EAGAIN;
}

/* selinux_socket_post_create. Sockets that the kernel makes for itself are not checked. */
SEC("lsm/socket_post_create")
int BPF_PROG(socket_post_create, struct socket *socket, int family, int type, int protocol,
	     int kernel)
{
	struct sock *sk = socket->sk;

	if (!sk)
		return 0;
	tg_begin_sock(sk);
	if (kernel || (tg_task_subject() & 0xffff) == TG_SID_MACHINE)
		return 0;
	if (tg_has_packets(family) && tg_meet_namespace(sk))
		return -EACCES;
	return tg_make_sock_label(sk, tg_family_class(family, type, protocol));
}

static __always_inline void tg_put_other(struct sock *sk, struct sock *other)
{
	__u32 peer = tg_socket_of(other).sid;
	struct tg_sock *kept = tg_sock_of(sk);

	if (kept)
		WRITE_ONCE(kept->label.peer, peer);
}

/* selinux_socket_socketpair. One task makes both ends, so both have a label or none. */
SEC("lsm/socket_socketpair")
int BPF_PROG(socket_socketpair, struct socket *socket, struct socket *other)
{
	struct sock *sk = socket->sk, *end = other->sk;

	if (sk && end) {
		tg_put_other(sk, end);
		tg_put_other(end, sk);
	}
	return 0;
}

/* Whether a clone is a bare copy, whose pointer to storage is the original's, until the kernel
 * clones that (sk_clone_lock). Other families make a sock of its own. */
static __always_inline int tg_is_bare_copy(struct sock *new)
{
	__u32 family = new->__sk_common.skc_family;

	return family == PF_INET || family == PF_INET6;
}

/* Labels a clone. Without a place for it the original gets storage, which the kernel clones. */
static __always_inline int tg_label_clone(struct sock *sk, struct sock *new,
					  const struct tg_socket *label)
{
	if (!tg_is_bare_copy(new))
		return tg_make_sock(new, label->sid, label->class, 0);
	if (!tg_is_labelling() && tg_put_plain_socket(TG_ADDRESS(new), label->sid, label->class, 0))
		return 0;
	return tg_settle_sock(sk);
}

/* selinux_sk_clone_security. The kernel goes on whatever happens here. */
SEC("lsm/sk_clone_security") int BPF_PROG(sk_clone_security, struct sock *sk, struct sock *new)
{
	__u64 plain = tg_find_plain_socket(TG_ADDRESS(sk));
	struct tg_sock *kept = plain ? tg_plain_sock(plain) : 0;

	tg_forget_plain_socket(TG_ADDRESS(new));
	if (!plain && !tg_is_bare_copy(new))
		kept = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!kept)
		return 0;
	struct tg_socket label = kept->label;

	if (tg_label_clone(sk, new, &label))
		WRITE_ONCE(state.clones_lost, 1);
	return 0;
}

/* The sock is gone. */
SEC("lsm/sk_free_security") int BPF_PROG(sk_free_security, struct sock *sk)
{
	tg_forget_plain_socket(TG_ADDRESS(sk));
	return 0;
}

/* selinux_sctp_sk_clone: a socket that is made for one association of another. */
SEC("lsm/sctp_sk_clone")
int BPF_PROG(sctp_sk_clone, void *association, struct sock *sk, struct sock *new)
{
	struct tg_sock *kept = tg_sock_of(sk);

	if (kept && tg_put_sock_label(new, kept->label.sid, kept->label.class))
		WRITE_ONCE(state.clones_lost, 1);
	return 0;
}

/* selinux_mptcp_add_subflow: the kernel's own socket, which carries a user's connection. */
SEC("lsm/mptcp_add_subflow") int BPF_PROG(mptcp_add_subflow, struct sock *sk, struct sock *subflow)
{
	struct tg_sock *kept = tg_sock_of(sk);

	return kept && tg_put_sock_label(subflow, kept->label.sid, kept->label.class) ? -ENOMEM : 0;
}

SEC("lsm/socket_listen") int BPF_PROG(socket_listen, struct socket *socket, int backlog)
{
	return tg_check_socket(socket, SOCKET__LISTEN);
}

SEC("lsm/socket_accept")
int BPF_PROG(socket_accept, struct socket *socket, struct socket *accepted)
{
	return tg_check_socket(socket, SOCKET__ACCEPT);
}

SEC("lsm/socket_recvmsg")
int BPF_PROG(socket_recvmsg, struct socket *socket, void *message, int size, int flags)
{
	struct sock *sk = socket->sk;

	return !sk || tg_all_may_use(sk, TG_SOCKET_READ) ? 0 : tg_check_sock(sk, SOCKET__READ);
}

SEC("lsm/socket_getsockname") int BPF_PROG(socket_getsockname, struct socket *socket)
{
	return tg_check_socket(socket, SOCKET__GETATTR);
}

SEC("lsm/socket_getpeername") int BPF_PROG(socket_getpeername, struct socket *socket)
{
	return tg_check_socket(socket, SOCKET__GETATTR);
}

SEC("lsm/socket_getsockopt")
int BPF_PROG(socket_getsockopt, struct socket *socket, int level, int option)
{
	return tg_check_socket(socket, SOCKET__GETOPT);
}

/* With this option, packets do not pass the programs that put labels into them. */
#define SOL_PACKET 263
#define PACKET_QDISC_BYPASS 20

SEC("lsm/socket_setsockopt")
int BPF_PROG(socket_setsockopt, struct socket *socket, int level, int option)
{
	if (level == SOL_PACKET && option == PACKET_QDISC_BYPASS &&
	    !(tg_task_subject() & TG_UNCONFINED) && tg_is_labelling())
		return -EACCES;
	return tg_check_socket(socket, SOCKET__SETOPT);
}

SEC("lsm/socket_shutdown") int BPF_PROG(socket_shutdown, struct socket *socket, int how)
{
	return tg_check_socket(socket, SOCKET__SHUTDOWN);
}

#endif
