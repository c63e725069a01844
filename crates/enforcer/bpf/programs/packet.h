/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that a socket receives. Each is checked if the policy has the capability
 * always_check_network. None carries a label that BPF could know, so all come from
 * SECINITSID_UNLABELED.
 */
#ifndef TOLLGATE_PROGRAMS_PACKET_H
#define TOLLGATE_PROGRAMS_PACKET_H

#include "../address.h"
#include "../ask.h"
#include "../endpoints.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../network.h"
#include "../request.h"
#include "../socket_class.h"
#include "../socket_label.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

/* Checks one permission for a packet. */
static __always_inline int tg_ask_packet(struct tg_request *request, __u32 target, __u32 class,
					 __u32 av)
{
	request->target = target;
	request->class = class;
	request->av = av;
	return tg_ask(request);
}

/* selinux_socket_sock_rcv_skb, selinux_inet_sys_rcv_skb */
static __noinline int tg_check_packet(struct sock *sk, __u64 packet)
{
	struct tg_socket own = tg_socket_of(sk);
	struct tg_endpoints ends = {};
	struct tg_host host = {};
	struct tg_request request = {
		.source = SECINITSID_UNLABELED,
		.manager = TG_MANAGER_NETWORK,
		.object = TG_OBJECT_PACKET,
		.text = packet,
	};

	if (own.sid == TG_SID_MACHINE || tg_is_unconfined(own.sid))
		return 0;
	tg_read_packet(packet, &ends);
	host.family = ends.family;
	__builtin_memcpy(host.address, ends.address[0], sizeof host.address);
	if (tg_has_policycap(TG_POLICYCAP_NETPEER)) {
		if (tg_ask_packet(&request, tg_interface_sid(&ends), SECCLASS_NETIF,
				  NETIF__INGRESS) ||
		    tg_ask_packet(&request, tg_node_sid(&host), SECCLASS_NODE, NODE__RECVFROM))
			return -EACCES;
		request.source = own.sid;
		if (tg_ask_packet(&request, SECINITSID_UNLABELED, SECCLASS_PEER, PEER__RECV))
			return -EACCES;
	}
	request.source = own.sid;
	return tg_ask_packet(&request, SECINITSID_UNLABELED, SECCLASS_PACKET, PACKET__RECV);
}

SEC("lsm/socket_sock_rcv_skb")
int BPF_PROG(socket_sock_rcv_skb, struct sock *sk, struct sk_buff *packet)
{
	__u32 family = sk->__sk_common.skc_family;

	if ((family != PF_INET && family != PF_INET6) ||
	    !tg_has_policycap(TG_POLICYCAP_ALWAYSNETWORK))
		return 0;
	return tg_check_packet(sk, TG_KERNEL_ADDRESS(packet));
}

#endif
