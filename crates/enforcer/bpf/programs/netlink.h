/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Netlink: messages of a process to the kernel (security/selinux/nlmsgtab.c). */
#ifndef TOLLGATE_PROGRAMS_NETLINK_H
#define TOLLGATE_PROGRAMS_NETLINK_H

#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../read.h"
#include "../request.h"
#include "../socket_label.h"
#include "../state.h"
#include "../subject.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"

/* The header of a message. */
struct tg_nlmsg {
	__u32 length;
	__u16 type, flags;
	__u32 sequence, port;
};

/* The kinds of messages. All types that the kernel knows are below these numbers. */
enum tg_message { TG_MESSAGE_UNKNOWN, TG_MESSAGE_READ, TG_MESSAGE_WRITE, TG_MESSAGE_READPRIV };
#define TG_ROUTE_MESSAGES 128u
#define TG_XFRM_MESSAGES 64u

/* RTM_*: groups of four, NEW DEL GET SET, from RTM_BASE on. */
#define R TG_MESSAGE_READ
#define W TG_MESSAGE_WRITE
const __u8 tg_route_messages[TG_ROUTE_MESSAGES] = {
	[16] = W,  W, R, W, /* LINK */
	[20] = W,  W, R,    /* ADDR */
	[24] = W,  W, R,    /* ROUTE */
	[28] = W,  W, R,    /* NEIGH */
	[32] = W,  W, R,    /* RULE */
	[36] = W,  W, R,    /* QDISC */
	[40] = W,  W, R,    /* TCLASS */
	[44] = W,  W, R,    /* TFILTER */
	[48] = W,  W, R,    /* ACTION */
	[52] = W,	    /* PREFIX */
	[58] = R,	    /* GETMULTICAST */
	[62] = R,	    /* GETANYCAST */
	[66] = R,  W,	    /* NEIGHTBL */
	[72] = W,  W, R,    /* ADDRLABEL */
	[78] = R,  W,	    /* DCB */
	[80] = W,  W, R,    /* NETCONF */
	[84] = W,  W, R,    /* MDB */
	[88] = W,  R, R,    /* NSID */
	[92] = R,	    /* NEWSTATS */
	[94] = R,  W,	    /* STATS */
	[96] = R,	    /* CACHEREPORT */
	[100] = W, W, R,    /* CHAIN */
	[104] = W, W, R,    /* NEXTHOP */
	[108] = W, W,	    /* LINKPROP */
	[112] = W, W, R,    /* VLAN */
	[116] = W, W, R,    /* NEXTHOPBUCKET */
	[120] = W, W, R,    /* TUNNEL */
};
/* XFRM_MSG_* */
const __u8 tg_xfrm_messages[TG_XFRM_MESSAGES] = {
	[16] = W, W, R, /* SA */
	[19] = W, W, R, /* POLICY */
	[22] = W, W, W, /* ALLOCSPI ACQUIRE EXPIRE */
	[25] = W, W, W, /* UPDPOLICY UPDSA POLEXPIRE */
	[28] = W, W,	/* FLUSHSA FLUSHPOLICY */
	[30] = W, R,	/* AE */
	[32] = R, W,	/* REPORT MIGRATE */
	[34] = R, R,	/* SADINFO */
	[36] = W, R,	/* SPDINFO */
	[38] = R,	/* MAPPING */
	[39] = W, R,	/* DEFAULT */
};
#undef R
#undef W

#define TCPDIAG_GETSOCK 18
#define DCCPDIAG_GETSOCK 19
#define SOCK_DIAG_BY_FAMILY 20
#define SOCK_DESTROY 21

static __always_inline __u32 tg_diag_av(__u32 type)
{
	switch (type) {
	case TCPDIAG_GETSOCK:
	case DCCPDIAG_GETSOCK:
	case SOCK_DIAG_BY_FAMILY:
		return NETLINK_TCPDIAG_SOCKET__NLMSG_READ;
	case SOCK_DESTROY:
		return NETLINK_TCPDIAG_SOCKET__NLMSG_WRITE;
	}
	return 0;
}

enum tg_audit_message {
	AUDIT_GET = 1000,
	AUDIT_SET,
	AUDIT_LIST,
	AUDIT_ADD,
	AUDIT_DEL,
	AUDIT_USER,
	AUDIT_SIGNAL_INFO = 1010,
	AUDIT_ADD_RULE,
	AUDIT_DEL_RULE,
	AUDIT_LIST_RULES,
	AUDIT_TRIM,
	AUDIT_MAKE_EQUIV,
	AUDIT_TTY_GET,
	AUDIT_TTY_SET,
	AUDIT_SET_FEATURE,
	AUDIT_GET_FEATURE,
	AUDIT_FIRST_USER_MSG = 1100,
	AUDIT_LAST_USER_MSG = 1199,
	AUDIT_FIRST_USER_MSG2 = 2100,
	AUDIT_LAST_USER_MSG2 = 2999,
};

static __always_inline __u32 tg_audit_av(__u32 type)
{
	if ((type >= AUDIT_FIRST_USER_MSG && type <= AUDIT_LAST_USER_MSG) ||
	    (type >= AUDIT_FIRST_USER_MSG2 && type <= AUDIT_LAST_USER_MSG2))
		return NETLINK_AUDIT_SOCKET__NLMSG_RELAY;
	switch (type) {
	case AUDIT_GET:
	case AUDIT_SIGNAL_INFO:
	case AUDIT_TTY_GET:
	case AUDIT_GET_FEATURE:
		return NETLINK_AUDIT_SOCKET__NLMSG_READ;
	case AUDIT_LIST:
	case AUDIT_LIST_RULES:
		return NETLINK_AUDIT_SOCKET__NLMSG_READPRIV;
	case AUDIT_SET:
	case AUDIT_ADD:
	case AUDIT_DEL:
	case AUDIT_ADD_RULE:
	case AUDIT_DEL_RULE:
	case AUDIT_TRIM:
	case AUDIT_MAKE_EQUIV:
	case AUDIT_SET_FEATURE:
		return NETLINK_AUDIT_SOCKET__NLMSG_WRITE;
	case AUDIT_USER:
		return NETLINK_AUDIT_SOCKET__NLMSG_RELAY;
	case AUDIT_TTY_SET:
		return NETLINK_AUDIT_SOCKET__NLMSG_TTY_AUDIT;
	}
	return 0;
}

/* The classes whose messages have permissions give these the same bits. */
_Static_assert(NETLINK_XFRM_SOCKET__NLMSG_READ == NETLINK_ROUTE_SOCKET__NLMSG_READ &&
		       NETLINK_XFRM_SOCKET__NLMSG_WRITE == NETLINK_ROUTE_SOCKET__NLMSG_WRITE,
	       "classes.txt");

static __always_inline __u32 tg_message_av(__u32 kind)
{
	return kind == TG_MESSAGE_READ	  ? NETLINK_ROUTE_SOCKET__NLMSG_READ
	       : kind == TG_MESSAGE_WRITE ? NETLINK_ROUTE_SOCKET__NLMSG_WRITE
					  : 0;
}

/* With the policy capability netlink_xperm, the one permission for all messages of a class. */
static __always_inline __u32 tg_any_message(__u32 class)
{
	if (class == SECCLASS_NETLINK_TCPDIAG_SOCKET)
		return NETLINK_TCPDIAG_SOCKET__NLMSG;
	if (class == SECCLASS_NETLINK_AUDIT_SOCKET)
		return NETLINK_AUDIT_SOCKET__NLMSG;
	return class == SECCLASS_NETLINK_XFRM_SOCKET ? NETLINK_XFRM_SOCKET__NLMSG
						     : NETLINK_ROUTE_SOCKET__NLMSG;
}

/* selinux_nlmsg_lookup: the permission that a message needs; 0: the type is not known. */
TG_FUNCTION __u32 tg_nlmsg_av(__u32 class, __u32 type)
{
	if (tg_has_policycap(TG_POLICYCAP_NETLINK_XPERM))
		return tg_any_message(class);
	if (class == SECCLASS_NETLINK_TCPDIAG_SOCKET)
		return tg_diag_av(type);
	if (class == SECCLASS_NETLINK_AUDIT_SOCKET)
		return tg_audit_av(type);
	if (class == SECCLASS_NETLINK_XFRM_SOCKET)
		return type < TG_XFRM_MESSAGES ? tg_message_av(tg_xfrm_messages[type]) : 0;
	return type < TG_ROUTE_MESSAGES ? tg_message_av(tg_route_messages[type]) : 0;
}

/* A message for which the policy has no permission: -EINVAL, unless the policy allows what it
 * does not know. */
static __noinline int tg_unknown_message(void)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!READ_ONCE(state.enforcing) || (generation && generation->allow_unknown) ||
	    (task && task->flags & TG_TASK_PERMISSIVE))
		return 0;
	return -EINVAL;
}

/* Messages that are sent together, and all permissions that they need. */
struct tg_messages {
	__u64 data;
	__u32 length, class, av, unknown;
};

/* Examines a message. Returns 1 if it is the last that the kernel reads. */
static long tg_next_message(__u64 number, struct tg_messages *messages)
{
	struct tg_nlmsg message = {};
	__u32 size, av;

	if (messages->length < sizeof message)
		return 1;
	TG_READ(message, messages->data);
	if (message.length < sizeof message || message.length > messages->length)
		return 1;
	av = tg_nlmsg_av(messages->class, message.type);
	if (!av && tg_unknown_message()) {
		messages->unknown = 1;
		return 1;
	}
	messages->av |= av;
	size = (message.length + 3) & ~3u;
	if (size >= messages->length)
		return 1;
	messages->data += size;
	messages->length -= size;
	return 0;
}

/* More do not fit into one send, unless the sender has raised the socket's buffer. */
#define TG_MESSAGES (1u << 16)

/* SELinux checks one message after the other: those before an unknown one are checked before
 * that one is refused. */
static __noinline int tg_check_messages(struct sock *sk, __u64 data, __u32 length)
{
	struct tg_socket socket = tg_socket_of(sk);
	struct tg_messages messages = {.data = data, .length = length, .class = socket.class};
	struct tg_request request = {
		.target = socket.sid,
		.class = socket.class,
		.manager = TG_MANAGER_SOCKET,
	};

	if (socket.class != SECCLASS_NETLINK_ROUTE_SOCKET &&
	    socket.class != SECCLASS_NETLINK_TCPDIAG_SOCKET &&
	    socket.class != SECCLASS_NETLINK_XFRM_SOCKET &&
	    socket.class != SECCLASS_NETLINK_AUDIT_SOCKET)
		return 0;
	if (bpf_loop(TG_MESSAGES, tg_next_message, &messages, 0) >= TG_MESSAGES &&
	    READ_ONCE(state.enforcing))
		return -EACCES;
	request.source = tg_subject_by_call() & 0xffff;
	request.av = messages.av;
	if (messages.av && socket.sid != SECINITSID_KERNEL && tg_ask(&request))
		return -EACCES;
	return messages.unknown ? -EINVAL : 0;
}

/* selinux_netlink_send */
SEC("lsm/netlink_send") int BPF_PROG(netlink_send, struct sock *sk, struct sk_buff *packet)
{
	int result;

	if (tg_subject_by_call() & TG_UNCONFINED)
		return 0;
	result = tg_check_messages(sk, (__u64)BPF_CORE_READ(packet, data), packet->len);
	if (result == -EINVAL)
		return -EINVAL;
	return result ? -EACCES : 0;
}

#endif
