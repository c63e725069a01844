/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets, ports and hosts in an event (LSM_AUDIT_DATA_NET of security/lsm_audit.c). */
#ifndef TOLLGATE_ENDPOINTS_H
#define TOLLGATE_ENDPOINTS_H

#include "decide.h"
#include "enforcer.h"
#include "ip.h"
#include "kernel.h"
#include "libbpf.h"
#include "path.h"
#include "read.h"

#define TG_INTERFACE_NAME 16 /* IFNAMSIZ */
#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10

/* The parts that are needed of struct sockaddr_in or struct sockaddr_in6. */
struct tg_address {
	__u16 family, port;
	union {
		__u32 v4;
		struct {
			__u32 flow, v6[4];
		};
	};
};

static __always_inline __u16 tg_swap(__u16 port)
{
	return port >> 8 | port << 8;
}

/* A unix socket appears with the path of its file, or with its name. The name need not be text.
 * It is a struct sockaddr_un after its length. */
static __always_inline void tg_tell_unix(struct tg_event *event, __u64 sock, __u64 root)
{
	__u64 named = (__u64)TG_MEMBER(sock, struct unix_sock, addr);
	__u64 path = sock + bpf_core_field_offset(struct unix_sock, path);

	event->object = TG_OBJECT_NONE;
	if (!named)
		return;
	if (TG_MEMBER(path, struct path, dentry)) {
		event->object = TG_OBJECT_PATH;
		tg_tell_path(event, path, root);
		return;
	}
	__u32 length = TG_MEMBER(named, struct unix_address, len);

	event->object = TG_OBJECT_UNIX;
	event->number = length - 2; /* without its family */
	bpf_probe_read_kernel(event->name, 108,
			      (void *)(named + bpf_core_field_offset(struct unix_address, len) +
				       sizeof length + 2));
}

#define TG_SOCK(sock, member) TG_MEMBER(sock, struct sock, __sk_common.member)

/* The addresses of a sock's connection: laddr= lport= faddr= fport=. */
TG_FUNCTION int tg_tell_socket(struct tg_event *event, __u64 sock, __u64 root)
{
	if (!event)
		return 0;
	struct tg_endpoints *ends = (void *)event->name;

	ends->family = TG_SOCK(sock, skc_family);
	switch (ends->family) {
	case AF_UNIX:
		tg_tell_unix(event, sock, root);
		return 0;
	case AF_INET:
		ends->address[0][0] = TG_SOCK(sock, skc_rcv_saddr);
		ends->address[1][0] = TG_SOCK(sock, skc_daddr);
		break;
	case AF_INET6:
		bpf_core_read(&ends->address[0], sizeof ends->address[0],
			      &((struct sock *)sock)->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(&ends->address[1], sizeof ends->address[1],
			      &((struct sock *)sock)->__sk_common.skc_v6_daddr);
		break;
	default:
		event->object = TG_OBJECT_NONE;
		return 0;
	}
	ends->port[0] = TG_SOCK(sock, skc_num);
	ends->port[1] = tg_swap(TG_SOCK(sock, skc_dport));
	return 1;
}

/* The port, and the host if `at` is its address: saddr= src= dest=. */
TG_FUNCTION int tg_tell_port(struct tg_event *event, __u32 ports, __u64 at)
{
	if (!event)
		return 0;
	struct tg_endpoints *ends = (void *)event->name;
	struct tg_address address = {};

	ends->port[ports >> 16 & 1] = ports;
	if (!at)
		return 1;
	TG_READ(address, at);
	ends->family = address.family ? address.family : AF_INET;
	if (address.family == AF_INET6)
		__builtin_memcpy(&ends->address[0], address.v6, sizeof address.v6);
	else
		ends->address[0][0] = address.v4;
	return 1;
}

/* The ports of TCP and UDP, and of protocols that have them at the same place. */
static __always_inline void tg_read_ports(struct tg_endpoints *ends, __u64 at, __u32 protocol)
{
	__u16 ports[2] = {};

	if (protocol != 6 && protocol != 17 && protocol != 33 && protocol != 132)
		return;
	TG_READ(ports, at);
	ends->port[0] = tg_swap(ports[0]);
	ends->port[1] = tg_swap(ports[1]);
}

/* The name of the device that a packet is at. */
static __always_inline void tg_read_interface(__u64 skb, char *name)
{
	__u64 device = (__u64)TG_MEMBER(skb, struct sk_buff, dev);

	bpf_probe_read_kernel_str(
		name, TG_INTERFACE_NAME,
		(void *)(device + bpf_core_field_offset(struct net_device, name)));
}

/* selinux_parse_skb: the source and the destination of a packet. */
TG_FUNCTION int tg_read_packet(__u64 skb, struct tg_endpoints *ends)
{
	if (!ends)
		return 0;
	__u64 at = (__u64)TG_MEMBER(skb, struct sk_buff, head) +
		   TG_MEMBER(skb, struct sk_buff, network_header);
	union tg_packet packet = {};

	TG_READ(packet, at);
	tg_read_interface(skb, ends->interface);
	if (packet.v4.version >> 4 == 4) {
		ends->family = AF_INET;
		ends->address[0][0] = packet.v4.source;
		ends->address[1][0] = packet.v4.destination;
		if (!(packet.v4.fragment & TG_FRAGMENT))
			tg_read_ports(ends, at + (packet.v4.version & 15) * 4, packet.v4.protocol);
		return 1;
	}
	ends->family = AF_INET6;
	__builtin_memcpy(ends->address[0], packet.v6.source, sizeof packet.v6.source);
	__builtin_memcpy(ends->address[1], packet.v6.destination, sizeof packet.v6.destination);
	tg_read_ports(ends, at + sizeof packet.v6, packet.v6.next);
	return 1;
}

#endif
