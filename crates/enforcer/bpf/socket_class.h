/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The class of a socket (socket_type_to_security_class). */
#ifndef TOLLGATE_SOCKET_CLASS_H
#define TOLLGATE_SOCKET_CLASS_H

#include "classes.h"
#include "enforcer.h"
#include "generation.h"
#include "libbpf.h"

enum { SOCK_STREAM = 1, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP };
enum {
	IPPROTO_IP = 0,
	IPPROTO_ICMP = 1,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_DCCP = 33,
	IPPROTO_ICMPV6 = 58,
	IPPROTO_SCTP = 132,
	IPPROTO_MPTCP = 262,
};
#define PF_UNIX 1
#define PF_INET 2
#define PF_APPLETALK 5
#define PF_INET6 10
#define PF_KEY 15
#define PF_NETLINK 16
#define PF_PACKET 17
#define PF_XDP 44
#define TG_FAMILIES 64u
#define TG_NETLINK_PROTOCOLS 32u

/* Protocols of netlink that have a class of their own. */
const __u8 tg_netlink_classes[TG_NETLINK_PROTOCOLS] = {
	[0] = SECCLASS_NETLINK_ROUTE_SOCKET,	  [4] = SECCLASS_NETLINK_TCPDIAG_SOCKET,
	[5] = SECCLASS_NETLINK_NFLOG_SOCKET,	  [6] = SECCLASS_NETLINK_XFRM_SOCKET,
	[7] = SECCLASS_NETLINK_SELINUX_SOCKET,	  [8] = SECCLASS_NETLINK_ISCSI_SOCKET,
	[9] = SECCLASS_NETLINK_AUDIT_SOCKET,	  [10] = SECCLASS_NETLINK_FIB_LOOKUP_SOCKET,
	[11] = SECCLASS_NETLINK_CONNECTOR_SOCKET, [12] = SECCLASS_NETLINK_NETFILTER_SOCKET,
	[14] = SECCLASS_NETLINK_DNRT_SOCKET,	  [15] = SECCLASS_NETLINK_KOBJECT_UEVENT_SOCKET,
	[16] = SECCLASS_NETLINK_GENERIC_SOCKET,	  [18] = SECCLASS_NETLINK_SCSITRANSPORT_SOCKET,
	[20] = SECCLASS_NETLINK_RDMA_SOCKET,	  [21] = SECCLASS_NETLINK_CRYPTO_SOCKET,
};

/* Families that have a class of their own with the policy capability extended_socket_class. */
const __u8 tg_family_classes[TG_FAMILIES] = {
	[3] = SECCLASS_AX25_SOCKET,	  [4] = SECCLASS_IPX_SOCKET,
	[6] = SECCLASS_NETROM_SOCKET,	  [8] = SECCLASS_ATMPVC_SOCKET,
	[9] = SECCLASS_X25_SOCKET,	  [11] = SECCLASS_ROSE_SOCKET,
	[12] = SECCLASS_DECNET_SOCKET,	  [20] = SECCLASS_ATMSVC_SOCKET,
	[21] = SECCLASS_RDS_SOCKET,	  [23] = SECCLASS_IRDA_SOCKET,
	[24] = SECCLASS_PPPOX_SOCKET,	  [26] = SECCLASS_LLC_SOCKET,
	[29] = SECCLASS_CAN_SOCKET,	  [30] = SECCLASS_TIPC_SOCKET,
	[31] = SECCLASS_BLUETOOTH_SOCKET, [32] = SECCLASS_IUCV_SOCKET,
	[33] = SECCLASS_RXRPC_SOCKET,	  [34] = SECCLASS_ISDN_SOCKET,
	[35] = SECCLASS_PHONET_SOCKET,	  [36] = SECCLASS_IEEE802154_SOCKET,
	[37] = SECCLASS_CAIF_SOCKET,	  [38] = SECCLASS_ALG_SOCKET,
	[39] = SECCLASS_NFC_SOCKET,	  [40] = SECCLASS_VSOCK_SOCKET,
	[41] = SECCLASS_KCM_SOCKET,	  [42] = SECCLASS_QIPCRTR_SOCKET,
	[43] = SECCLASS_SMC_SOCKET,	  [44] = SECCLASS_XDP_SOCKET,
	[45] = SECCLASS_MCTP_SOCKET,
};

static __always_inline __u32 tg_internet_class(__u32 type, __u32 protocol, int extended)
{
	switch (type) {
	case SOCK_STREAM:
	case SOCK_SEQPACKET:
		if (protocol == IPPROTO_IP || protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP)
			return SECCLASS_TCP_SOCKET;
		if (extended && protocol == IPPROTO_SCTP)
			return SECCLASS_SCTP_SOCKET;
		return SECCLASS_RAWIP_SOCKET;
	case SOCK_DGRAM:
		if (protocol == IPPROTO_IP || protocol == IPPROTO_UDP)
			return SECCLASS_UDP_SOCKET;
		if (extended && (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6))
			return SECCLASS_ICMP_SOCKET;
		return SECCLASS_RAWIP_SOCKET;
	case SOCK_DCCP:
		return SECCLASS_DCCP_SOCKET;
	}
	return SECCLASS_RAWIP_SOCKET;
}

static __always_inline __u32 tg_family_class(__u32 family, __u32 type, __u32 protocol)
{
	int extended = tg_has_policycap(TG_POLICYCAP_EXTSOCKCLASS);
	__u32 class = 0;

	switch (family) {
	case PF_UNIX:
		return type == SOCK_STREAM || type == SOCK_SEQPACKET ? SECCLASS_UNIX_STREAM_SOCKET
								     : SECCLASS_UNIX_DGRAM_SOCKET;
	case PF_INET:
	case PF_INET6:
		return tg_internet_class(type, protocol, extended);
	case PF_NETLINK:
		if (protocol < TG_NETLINK_PROTOCOLS)
			class = tg_netlink_classes[protocol];
		return class ? class : SECCLASS_NETLINK_SOCKET;
	case PF_PACKET:
		return SECCLASS_PACKET_SOCKET;
	case PF_KEY:
		return SECCLASS_KEY_SOCKET;
	case PF_APPLETALK:
		return SECCLASS_APPLETALK_SOCKET;
	}
	if (extended && family < TG_FAMILIES)
		class = tg_family_classes[family];
	return class ? class : SECCLASS_SOCKET;
}

#endif
