/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that a socket receives, and whom it has for a peer. A packet's label is in tc_index,
 * where datapath/ has put it (datapath/carried.h); one without comes from SECINITSID_UNLABELED.
 * Packets are checked if some have labels, or the policy has the capability always_check_network
 * (selinux_peerlbl_enabled).
 */
#ifndef TOLLGATE_PROGRAMS_PACKET_H
#define TOLLGATE_PROGRAMS_PACKET_H

#include "../address.h"
#include "../admitted.h"
#include "../ask.h"
#include "../compiler.h"
#include "../datapath/zone.h"
#include "../endpoints.h"
#include "../generation.h"
#include "../heard.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../network.h"
#include "../request.h"
#include "../socket_class.h"
#include "../socket_label.h"
#include "../subject.h"
#include "../text.h"
#include "classes.h"
#include "datapath.h"
#include "enforcer.h"
#include "socket.h"

/* Checks one permission for a packet. `again` stays set if nothing is to be audited next time. */
static __always_inline int tg_ask_packet(struct tg_request *request, __u32 target, __u32 class,
					 __u32 av, __u32 *again)
{
	request->target = target;
	request->class = class;
	request->av = av;
	int result = tg_ask(request);

	*again &= !(av & ~request->allowed);
	return result;
}

/* Whether each packet may have another sender. */
static __always_inline int tg_has_datagrams(__u32 class)
{
	return class != SECCLASS_TCP_SOCKET && class != SECCLASS_SCTP_SOCKET &&
	       class != SECCLASS_DCCP_SOCKET;
}

/* selinux_skb_peerlbl_sid */
static __always_inline __u32 tg_packet_sid(const struct sk_buff *packet)
{
	__u32 sid = packet->tc_index;

	return sid ? sid : SECINITSID_UNLABELED;
}

/* The SID of the device that a packet is at. A function of its own, for its stack. */
static __noinline __u32 tg_device_sid(__u64 packet)
{
	struct tg_interface_name name = {};

	tg_read_interface(packet, name.text);
	return tg_interface_sid(&name);
}

/* selinux_socket_sock_rcv_skb, selinux_inet_sys_rcv_skb */
static __always_inline int tg_check_packet(struct tg_socket *own, struct tg_arrival *arrival,
					   __u64 packet, __u32 *again)
{
	__u32 family = arrival->device & TG_ARRIVAL_SIX ? AF_INET6 : AF_INET;
	struct tg_request request = {
		.source = arrival->peer,
		.manager = TG_MANAGER_NETWORK,
		.object = TG_OBJECT_PACKET,
		.text = packet,
	};

	if (tg_has_policycap(TG_POLICYCAP_NETPEER)) {
		if (tg_ask_packet(&request, tg_device_sid(packet), SECCLASS_NETIF, NETIF__INGRESS,
				  again) ||
		    tg_ask_packet(&request, tg_node_sid(family, (void *)arrival->address),
				  SECCLASS_NODE, NODE__RECVFROM, again))
			return -EACCES;
		request.source = own->sid;
		if (tg_ask_packet(&request, arrival->peer, SECCLASS_PEER, PEER__RECV, again))
			return -EACCES;
	}
	/* selinux_secmark_enabled: no packet has a secmark. */
	if (!tg_has_policycap(TG_POLICYCAP_ALWAYSNETWORK))
		return 0;
	request.source = own->sid;
	return tg_ask_packet(&request, SECINITSID_UNLABELED, SECCLASS_PACKET, PACKET__RECV, again);
}

/* Checks a packet of a kind that was not admitted before, and enters it in `entry`. */
static __noinline int tg_receive(struct sock *sk, struct tg_socket *own, __u64 packet,
				 struct tg_arrival *arrival, struct tg_admitted *entry)
{
	__u32 again = 1;
	int result = tg_check_packet(own, arrival, packet, &again);

	if (result)
		return result;
	__u32 heard = tg_has_datagrams(own->class) && tg_is_labelling();

	if (heard)
		tg_hear(sk, own, arrival);
	if (again && entry)
		tg_admit(entry, arrival, heard);
	return 0;
}

SEC("lsm/socket_sock_rcv_skb")
int BPF_PROG(socket_sock_rcv_skb, struct sock *sk, struct sk_buff *packet)
{
	__u32 family = sk->__sk_common.skc_family;

	if (family != PF_INET && family != PF_INET6)
		return 0;
	struct tg_sock *kept = tg_sock_of(sk);

	if (!kept || kept->label.sid == TG_SID_MACHINE || tg_is_sock_unconfined(kept))
		return 0;
	struct tg_socket *own = &kept->label;
	struct tg_arrival arrival = {
		.epoch = READ_ONCE(state.epoch),
		.own = own->sid,
		.peer = tg_packet_sid(packet),
	};

	if (tg_is_connection(sk, own->class))
		tg_read_connected(sk, packet, &arrival);
	else
		tg_read_arrival(packet, own->class == SECCLASS_UDP_SOCKET, &arrival);
	if (tg_has_datagrams(own->class))
		arrival.socket = sk->__sk_common.skc_cookie.counter;
	struct tg_admitted *entry = tg_admitted_place(&arrival);

	if (entry && tg_was_admitted(entry, &arrival)) {
		if (entry->heard && own->peer != arrival.peer)
			WRITE_ONCE(own->peer, arrival.peer);
		return 0;
	}
	/* No task is current. */
	if (tg_await_labels(sk, 0))
		return -EACCES;
	return tg_receive(sk, own, TG_KERNEL_ADDRESS(packet), &arrival, entry);
}

/* The zone of the network from which a packet comes; 0: none. */
static __always_inline struct tg_zone *tg_packet_zone(__u64 packet)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_endpoints ends = {};

	if (!generation || !generation->datapath.zones)
		return 0;
	tg_read_packet(packet, &ends);
	return tg_find_zone(&generation->datapath, ends.family == AF_INET6, ends.address[0]);
}

/*
 * selinux_inet_conn_request: the label of the socket that will be accepted is the listener's with
 * the client's level (selinux_conn_sid). Its request_sock has no storage, so its address stands for
 * it.
 */
static __noinline int tg_request_connection(struct tg_socket *listener, __u64 request, __u64 packet,
					    __u32 peer)
{
	struct tg_connection connection = {listener->sid, peer};

	if (listener->sid != TG_SID_MACHINE && peer != SECINITSID_UNLABELED) {
		if (!tg_copy_range(listener->sid, peer, tg_packet_zone(packet), &connection.sid))
			tg_make_text(connection.sid, listener->sid, peer);
		else if (!tg_is_unconfined(listener->sid))
			return -EACCES;
	}
	bpf_map_update_elem(&requests, &request, &connection, BPF_ANY);
	return 0;
}

SEC("lsm/inet_conn_request")
int BPF_PROG(inet_conn_request, const struct sock *sk, struct sk_buff *packet,
	     struct request_sock *request)
{
	struct tg_socket listener = tg_socket_of((struct sock *)sk);

	return tg_request_connection(&listener, TG_KERNEL_ADDRESS(request),
				     TG_KERNEL_ADDRESS(packet), tg_packet_sid(packet));
}

/* selinux_inet_csk_clone */
SEC("lsm/inet_csk_clone")
int BPF_PROG(inet_csk_clone, struct sock *new, const struct request_sock *request)
{
	__u64 address = TG_KERNEL_ADDRESS(request);
	struct tg_connection *connection = bpf_map_lookup_elem(&requests, &address);

	if (!connection)
		return 0;
	struct tg_socket label = {connection->sid, tg_socket_of(new).class};

	if (!tg_put_sock_label(new, label.sid, label.class))
		tg_keep_peer(new, &label, connection->peer);
	return 0;
}

/* selinux_inet_conn_established: the client's socket learns whom it is connected to. */
SEC("lsm/inet_conn_established")
int BPF_PROG(inet_conn_established, struct sock *sk, struct sk_buff *packet)
{
	struct tg_socket own = tg_socket_of(sk);

	if (packet)
		tg_keep_peer(sk, &own, tg_packet_sid(packet));
	return 0;
}

#endif
