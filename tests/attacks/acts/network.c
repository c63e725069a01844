/* Ports and families: connections without connect(2), protocols on top of others. */
#include "acts.h"
#include <arpa/inet.h>
#include <linux/if_alg.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define AF_SMC_ 43
#define SOL_SCTP_ 132
#define SCTP_SOCKOPT_CONNECTX_ 110

static const struct sockaddr_in port = {.sin_family = AF_INET,
					.sin_port = __builtin_bswap16(PORT),
					.sin_addr = {.s_addr = 0x0100007f}};

/* Loopback may be down in such a small guest. */
static void raise_loopback(void)
{
	must(!system("ip link set lo up"), "ip");
}

static void serve(int protocol)
{
	int one = 5, listening = socket(AF_INET, SOCK_STREAM, protocol);

	if (listening >= 0) {
		setsockopt(listening, SOL_TCP, TCP_FASTOPEN, &one, sizeof one);
		must(!bind(listening, (const void *)&port, sizeof port) && !listen(listening, 4),
		     "listen");
	}
	keeping();
	pause();
}

static void serve_tcp(void)
{
	serve(0);
}

static void serve_mptcp(void)
{
	serve(IPPROTO_MPTCP);
}

static void serve_sctp(void)
{
	serve(IPPROTO_SCTP);
}

static int connects(int family, int protocol)
{
	return outcome(
		connect(socket(family, SOCK_STREAM, protocol), (const void *)&port, sizeof port));
}

static int connected(void)
{
	return connects(AF_INET, 0);
}

static int connected_by_mptcp(void)
{
	return connects(AF_INET, IPPROTO_MPTCP);
}

static int connected_by_sctp(void)
{
	return connects(AF_INET, IPPROTO_SCTP);
}

/* SMC falls back on a TCP socket that the kernel makes for itself. */
static int connected_by_smc(void)
{
	return connects(AF_SMC_, 0);
}

static int connected_from_ipv6(void)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = port.sin_port};
	int six = socket(AF_INET6, SOCK_STREAM, 0);

	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(mapped.sin6_addr.s6_addr + 12, &port.sin_addr, 4);
	return outcome(connect(six, (void *)&mapped, sizeof mapped));
}

/* The first data opens the connection: no connect(2) is called. */
static int opened_by_sending(int protocol, int flags)
{
	return outcome(sendto(socket(AF_INET, SOCK_STREAM, protocol), "x", 1, flags,
			      (const void *)&port, sizeof port));
}

static int fast_open(void)
{
	return opened_by_sending(0, MSG_FASTOPEN);
}

static int fast_open_by_mptcp(void)
{
	return opened_by_sending(IPPROTO_MPTCP, MSG_FASTOPEN);
}

static int sent_by_sctp(void)
{
	return opened_by_sending(IPPROTO_SCTP, 0);
}

static int connected_by_option(void)
{
	return outcome(setsockopt(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), SOL_SCTP_,
				  SCTP_SOCKOPT_CONNECTX_, &port, sizeof port));
}

/* A port of the type that is denied. */
static int bound_port(void)
{
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in own = port;

	own.sin_port = htons(PORT + 1);
	return outcome(bind(listening, (void *)&own, sizeof own));
}

static int algorithm(void)
{
	return outcome(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static int host_socket(void)
{
	return outcome(socket(AF_VSOCK, SOCK_STREAM, 0));
}

/* Packets past all sockets. */
static int raw_packet(void)
{
	return outcome(socket(AF_PACKET, SOCK_DGRAM, 0));
}

const struct act network_acts[] = {
	{"connected", connected, .keeper = serve_tcp, .prepare = raise_loopback},
	{"connected_by_mptcp", connected_by_mptcp, .keeper = serve_mptcp,
	 .prepare = raise_loopback},
	{"connected_by_sctp", connected_by_sctp, .keeper = serve_sctp, .prepare = raise_loopback},
	{"connected_by_smc", connected_by_smc, .keeper = serve_tcp, .prepare = raise_loopback},
	{"connected_from_ipv6", connected_from_ipv6, .keeper = serve_tcp,
	 .prepare = raise_loopback},
	{"fast_open", fast_open, .keeper = serve_tcp, .prepare = raise_loopback},
	{"fast_open_by_mptcp", fast_open_by_mptcp, .keeper = serve_mptcp,
	 .prepare = raise_loopback},
	{"sent_by_sctp", sent_by_sctp, .keeper = serve_sctp, .prepare = raise_loopback},
	{"connected_by_option", connected_by_option, .keeper = serve_sctp,
	 .prepare = raise_loopback},
	{"bound_port", bound_port, .prepare = raise_loopback},
	{"algorithm", algorithm},
	{"host_socket", host_socket},
	{"raw_packet", raw_packet},
	{},
};
