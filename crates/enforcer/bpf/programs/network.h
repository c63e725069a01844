/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports and hosts that a socket may bind to and connect to. */
#ifndef TOLLGATE_PROGRAMS_NETWORK_H
#define TOLLGATE_PROGRAMS_NETWORK_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../endpoints.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../network.h"
#include "../read.h"
#include "../request.h"
#include "../socket_access.h"
#include "../socket_class.h"
#include "../socket_label.h"
#include "../subject.h"
#include "../use.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "socket.h"

#define TG_FAMILY_BYTES 2
#define TG_IN_BYTES 16
#define TG_IN6_BYTES 24	   /* SIN6_LEN_RFC2133 */
#define TG_SOCKADDR_IN6 28 /* size of struct sockaddr_in6 */

/* All classes of sockets that use ports or hosts give these permissions the same bits. */
_Static_assert(TCP_SOCKET__NODE_BIND == RAWIP_SOCKET__NODE_BIND &&
		       UDP_SOCKET__NODE_BIND == RAWIP_SOCKET__NODE_BIND &&
		       DCCP_SOCKET__NODE_BIND == RAWIP_SOCKET__NODE_BIND &&
		       SCTP_SOCKET__NODE_BIND == RAWIP_SOCKET__NODE_BIND &&
		       ICMP_SOCKET__NODE_BIND == RAWIP_SOCKET__NODE_BIND &&
		       DCCP_SOCKET__NAME_CONNECT == TCP_SOCKET__NAME_CONNECT &&
		       SCTP_SOCKET__NAME_CONNECT == TCP_SOCKET__NAME_CONNECT,
	       "classes.txt");

/* Whether the kernel gives this port to tasks that name none (inet_get_local_port_range), and
 * any task may bind to it (inet_port_requires_bind_service). */
static __noinline int tg_is_local_port(__u64 sock, __u32 port)
{
	struct net *net = BPF_CORE_READ((struct sock *)sock, __sk_common.skc_net.net);
	__u32 low, high;

	if (bpf_core_field_exists(struct local_ports, range)) {
		low = BPF_CORE_READ(net, ipv4.ip_local_ports.range[0]);
		high = BPF_CORE_READ(net, ipv4.ip_local_ports.range[1]);
	} else {
		__u32 range = BPF_CORE_READ((struct net___halves *)net, ipv4.ip_local_ports.range);

		low = range & 0xffff;
		high = range >> 16;
	}
	return port >= low && port <= high &&
	       port >= (__u32)BPF_CORE_READ(net, ipv4.sysctl_ip_prot_sock);
}

/* Checks a permission on a port or a host. The subject is the socket. */
static __always_inline int tg_ask_network(struct tg_socket *own, __u32 target, __u32 av,
					  __u32 ports, __u64 address)
{
	struct tg_request request = {
		.source = own->sid,
		.target = target,
		.class = own->class,
		.av = av,
		.manager = TG_MANAGER_NETWORK,
		.object = TG_OBJECT_PORT,
		.number = ports,
		.text = address,
	};

	return tg_ask(&request);
}

#define TG_DESTINATION 0x10000u /* flag beside a port: it is the destination of a connection */

/* The error for an address of a family that the socket does not support. SCTP has another one. */
static __always_inline int tg_wrong_family(__u32 protocol)
{
	return protocol == IPPROTO_SCTP ? -EINVAL : -EAFNOSUPPORT;
}

/* The host in an address that a socket is bound to. Returns 0, or the error of
 * selinux_socket_bind for an invalid address. */
static __noinline int tg_host_of(struct tg_address *address, struct tg_host *host, __u32 family,
				 __u32 protocol, __u32 length)
{
	if (!address || !host)
		return -EINVAL;
	switch (address->family) {
	case AF_UNSPEC:
		if (length < TG_IN_BYTES || (family == PF_INET6 && length < TG_IN6_BYTES))
			return -EINVAL;
		if (family == PF_INET6 || address->v4)
			return tg_wrong_family(protocol);
		return 0;
	case AF_INET:
		host->address[0] = address->v4;
		return length < TG_IN_BYTES ? -EINVAL : 0;
	case AF_INET6:
		__builtin_memcpy(host->address, address->v6, sizeof host->address);
		return length < TG_IN6_BYTES ? -EINVAL : 0;
	}
	return tg_wrong_family(protocol);
}

/* The second half of selinux_socket_bind: the socket, not the task, is checked for a port and a
 * host. */
static __noinline int tg_check_bind(struct sock *sk, __u64 at, __u32 length)
{
	struct tg_socket own = tg_socket_of(sk);
	__u32 family = sk->__sk_common.skc_family, protocol = sk->sk_protocol, port;
	struct tg_address address = {};
	struct tg_host host = {};
	int result;

	if ((family != PF_INET && family != PF_INET6) || own.sid == TG_SID_MACHINE ||
	    tg_is_unconfined(own.sid))
		return 0;
	if (length < TG_FAMILY_BYTES)
		return -EINVAL;
	TG_READ(address, at);
	result = tg_host_of(&address, &host, family, protocol, length);
	if (result)
		return result;
	port = tg_swap(address.port);
	if (port && !tg_is_local_port(TG_KERNEL_ADDRESS(sk), port) &&
	    tg_ask_network(&own, tg_port_sid(protocol, port), SOCKET__NAME_BIND, port, 0))
		return -EACCES;
	family = address.family == AF_INET6 ? AF_INET6 : AF_INET;
	return tg_ask_network(&own, tg_node_sid(family, &host), RAWIP_SOCKET__NODE_BIND, port, at);
}

static __always_inline int tg_bind(struct sock *sk, __u64 address, __u32 length)
{
	int result = tg_check_sock(sk, SOCKET__BIND);

	return result ? result : tg_check_bind(sk, address, length);
}

SEC("lsm/socket_bind")
int BPF_PROG(socket_bind, struct socket *socket, void *address, int length)
{
	struct sock *sk = socket->sk;

	return sk ? tg_bind(sk, TG_KERNEL_ADDRESS(address), length) : 0;
}

/* The second half of selinux_socket_connect_helper. */
static __noinline int tg_check_connect(struct sock *sk, __u64 at, __u32 length)
{
	struct tg_socket own = tg_socket_of(sk);
	__u32 protocol = sk->sk_protocol, needed, port;
	struct tg_address address = {};
	__u64 subject = tg_task_subject();
	/* Most sockets have the domain of who connects them. */
	int is_own = own.sid == (subject & 0xffff);

	if (own.sid == TG_SID_MACHINE ||
	    (is_own ? !!(subject & TG_UNCONFINED) : tg_is_unconfined(own.sid)))
		return 0;
	if (length < TG_FAMILY_BYTES)
		return -EINVAL;
	TG_READ(address, at);
	/* With AF_UNSPEC the socket is disconnected. */
	if (address.family == AF_UNSPEC)
		return 0;
	if (own.class != SECCLASS_TCP_SOCKET && own.class != SECCLASS_DCCP_SOCKET &&
	    own.class != SECCLASS_SCTP_SOCKET)
		return 0;
	if (address.family != AF_INET && address.family != AF_INET6)
		return own.class == SECCLASS_SCTP_SOCKET ? -EINVAL : -EAFNOSUPPORT;
	needed = address.family == AF_INET ? TG_IN_BYTES : TG_IN6_BYTES;
	if (length < needed)
		return -EINVAL;
	port = tg_swap(address.port);
	return tg_ask_network(&own, tg_port_sid(protocol, port), TCP_SOCKET__NAME_CONNECT,
			      port | TG_DESTINATION, 0);
}

static __always_inline int tg_connect(struct sock *sk, __u64 address, __u32 length)
{
	int result = tg_check_sock(sk, SOCKET__CONNECT);

	if (!result)
		result = tg_check_connect(sk, address, length);
	if (result || !tg_is_labelling())
		return result;
	return tg_await_labels(sk, bpf_get_current_pid_tgid() >> 32);
}

SEC("lsm/socket_connect")
int BPF_PROG(socket_connect, struct socket *socket, void *address, int length)
{
	struct sock *sk = socket->sk;

	return sk ? tg_connect(sk, TG_KERNEL_ADDRESS(address), length) : 0;
}

#define MSG_FASTOPEN 0x20000000 /* the first data opens the connection, without connect(2) */

static __always_inline int tg_send(struct sock *sk)
{
	__u64 subject = tg_task_subject();

	if (subject & TG_UNCONFINED && !tg_is_labelling())
		return 0;
	struct tg_sock *own = tg_sock_of(sk);
	__u32 epoch = tg_labels_epoch();

	if (own && own->label.labelled == epoch &&
	    (subject & TG_UNCONFINED || tg_was_granted(own, subject, TG_USE_WRITE)))
		return 0;
	int result = subject & TG_UNCONFINED ? 0 : tg_check_sock(sk, SOCKET__WRITE);

	if (result)
		return result;
	if (tg_is_labelling())
		return tg_await_labels(sk, bpf_get_current_pid_tgid() >> 32);
	if (own)
		WRITE_ONCE(own->label.labelled, epoch);
	return 0;
}

/* selinux_socket_sendmsg */
SEC("lsm/socket_sendmsg")
int BPF_PROG(socket_sendmsg, struct socket *socket, struct msghdr *message, int size)
{
	struct sock *sk = socket->sk;

	if (!sk)
		return 0;
	/* A unix socket sends no packets. */
	int result = tg_all_may_use(sk, TG_SOCKET_WRITE) ? 0 : tg_send(sk);

	if (result || !(message->msg_flags & MSG_FASTOPEN) || !message->msg_name)
		return result;
	return tg_connect(sk, (__u64)message->msg_name, message->msg_namelen);
}

enum tg_sctp_option {
	SCTP_SET_PEER_PRIMARY_ADDR = 5,
	SCTP_PRIMARY_ADDR = 6,
	SCTP_SOCKOPT_BINDX_ADD = 100,
	SCTP_SOCKOPT_CONNECTX = 110,
	SCTP_SENDMSG_CONNECT = 126,
	SCTP_PARAM_ADD_IP = 0x01c0, /* in network byte order */
	SCTP_PARAM_SET_PRIMARY = 0x04c0,
};
#define TG_SCTP_ADDRESSES 8

/* The length of an address; 0: no socket could have it. */
static __always_inline __u32 tg_address_length(__u64 at, __u32 length)
{
	__u16 family = AF_UNSPEC;
	__u32 size;

	TG_READ(family, at);
	size = family == AF_INET6 ? TG_SOCKADDR_IN6 : TG_IN_BYTES;
	if (size > length || (family != AF_INET6 && family != AF_INET && family != AF_UNSPEC))
		return 0;
	return size;
}

/* selinux_sctp_bind_connect */
SEC("lsm/sctp_bind_connect")
int BPF_PROG(sctp_bind_connect, struct sock *sk, int option, void *addresses, int length)
{
	__u32 binds = 0;
	int result;

	switch (option) {
	case SCTP_PRIMARY_ADDR:
	case SCTP_SET_PEER_PRIMARY_ADDR:
	case SCTP_SOCKOPT_BINDX_ADD:
		binds = 1;
		break;
	case SCTP_SOCKOPT_CONNECTX:
	case SCTP_PARAM_SET_PRIMARY:
	case SCTP_PARAM_ADD_IP:
	case SCTP_SENDMSG_CONNECT:
		break;
	default:
		return -EINVAL;
	}
	if (tg_task_subject() & TG_UNCONFINED)
		return 0;
	__u64 at = TG_KERNEL_ADDRESS(addresses);
	__u32 left = length, size;

	TG_ROLL
	for (int i = 0; i < TG_SCTP_ADDRESSES && left; i++) {
		size = tg_address_length(at, left);
		if (!size)
			return -EINVAL;
		result = binds ? tg_bind(sk, at, size) : tg_connect(sk, at, size);
		if (result)
			return result == -EINVAL ? -EINVAL : -EACCES;
		at += size;
		left -= size;
	}
	/* SELinux reads all addresses, however many there are. */
	return left ? -EINVAL : 0;
}

#endif
