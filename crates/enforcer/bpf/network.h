/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The SIDs of ports, hosts and interfaces. */
#ifndef TOLLGATE_NETWORK_H
#define TOLLGATE_NETWORK_H

#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "socket_class.h"

/* The address of a host, as packets have it; that of IPv4 is the first word. */
struct tg_host {
	__u32 address[4];
};

/* security_port_sid. The protocol is one byte there, so MPTCP counts as TCP. */
TG_FUNCTION __u32 tg_port_sid(__u32 protocol, __u32 port)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u32 transport = TG_TRANSPORTS, sid = 0;

	switch (protocol & 0xff) {
	case IPPROTO_TCP:
		transport = TG_TRANSPORT_TCP;
		break;
	case IPPROTO_UDP:
		transport = TG_TRANSPORT_UDP;
		break;
	case IPPROTO_DCCP:
		transport = TG_TRANSPORT_DCCP;
		break;
	case IPPROTO_SCTP:
		transport = TG_TRANSPORT_SCTP;
		break;
	}
	if (generation && transport < TG_TRANSPORTS)
		sid = generation->network.port[transport][port & (TG_PORTS - 1)];
	return sid ? sid : SECINITSID_PORT;
}

/* security_node_sid */
TG_FUNCTION __u32 tg_node_sid(__u32 family, const struct tg_host *host)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!generation || !host)
		return SECINITSID_NODE;
	TG_ROLL
	for (__u32 i = 0; i < TG_NODES; i++) {
		const struct tg_node *node = &generation->network.node[i];
		__u32 other = node->family ^ family;

		if (!node->sid)
			break;
		TG_UNROLL
		for (__u32 k = 0; k < 4; k++)
			other |= node->address[k] ^ (host->address[k] & node->mask[k]);
		if (!other)
			return node->sid;
	}
	return SECINITSID_NODE;
}

/* The name of an interface, with zeros at its end. */
struct tg_interface_name {
	char text[16];
};

/* security_netif_sid */
TG_FUNCTION __u32 tg_interface_sid(const struct tg_interface_name *interface)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u64 name[2];

	if (!generation || !interface)
		return SECINITSID_NETIF;
	__builtin_memcpy(name, interface->text, sizeof name);
	TG_ROLL
	for (__u32 i = 0; i < TG_INTERFACES; i++) {
		const struct tg_interface *known = &generation->network.interface[i];

		if (!known->sid)
			break;
		if (!(((name[0] ^ known->name[0]) & known->mask[0]) |
		      ((name[1] ^ known->name[1]) & known->mask[1])))
			return known->sid;
	}
	return SECINITSID_NETIF;
}

#endif
