/* Datagrams of many lengths, to a server that sends them back: which of them arrive whole, and what
 * the kernel says of those that are too large. */
#define _GNU_SOURCE
#include "talk.h"

#include <errno.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* Attempts per length: the first packets may meet a shorter link further on. */
#define ATTEMPTS 4
#define IPV6_HEADER 40

struct outcome {
	int lost;     /* sent, and not sent back */
	int too_long; /* refused by this machine's kernel */
	size_t length;
	bool whole;
};

/* The largest datagram that fits the path as the kernel knows it. */
static size_t fitting(int socket, const struct words *words)
{
	bool four = words->family == AF_INET;
	int mtu = 0;
	socklen_t size = sizeof(mtu);

	if (getsockopt(socket, four ? IPPROTO_IP : (int)IPPROTO_IPV6, four ? IP_MTU : IPV6_MTU,
		       &mtu, &size))
		fail("IP_MTU");
	return mtu - sizeof(struct udphdr) - (four ? sizeof(struct iphdr) : IPV6_HEADER);
}

/* Whether this datagram comes back; older ones may come before it. */
static bool comes_back(int socket, size_t length, long end)
{
	static uint8_t bytes[LARGEST];

	while (ready_until(socket, POLLIN, end)) {
		ssize_t count = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (count == (ssize_t)length)
			return matches(bytes, length, 0, length);
		/* A router's answer to what was sent. */
		if (count < 0 && errno == EMSGSIZE)
			return false;
	}
	return false;
}

/* Sends until it comes back: what is too long is made as long as the kernel allows. */
static struct outcome exchange(int socket, const struct words *words, size_t length)
{
	static uint8_t bytes[LARGEST];
	struct outcome outcome = {.length = length};

	for (int attempt = 0; attempt < ATTEMPTS && !outcome.whole; attempt++) {
		fill(bytes, outcome.length, 0, outcome.length);
		if (send(socket, bytes, outcome.length, 0) < 0) {
			if (errno != EMSGSIZE)
				fail("send");
			outcome.too_long++;
			outcome.length = fitting(socket, words);
			continue;
		}
		outcome.whole = comes_back(socket, outcome.length, milliseconds() + words->wait);
		outcome.lost += !outcome.whole;
	}
	return outcome;
}

int sizes(const struct words *words)
{
	union address to;
	socklen_t size = address_of(&to, words->family, words->rest[1], number(words->rest[2]));
	int socket = open_socket(words, "udp"), lacking = 0;

	set(socket, SOL_SOCKET, SO_SNDBUF, 4 << 20, "SO_SNDBUF");
	set(socket, SOL_SOCKET, SO_RCVBUF, 4 << 20, "SO_RCVBUF");
	if (connect(socket, &to.any, size))
		fail("connect");
	for (int at = 3; at < words->count; at++) {
		struct outcome outcome = exchange(socket, words, number(words->rest[at]));

		printf("size%s %s asked=%s length=%zu whole=%s lost=%d refused=%d\n",
		       words->family == AF_INET ? "4" : "6", words->fragment > 0 ? "df" : "any",
		       words->rest[at], outcome.length, outcome.whole ? "yes" : "no", outcome.lost,
		       outcome.too_long);
		lacking += !outcome.whole;
	}
	return lacking != 0;
}
