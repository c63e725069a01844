/* Payloads, addresses, the clock, labels. */
#define _GNU_SOURCE
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint8_t at(size_t offset, uint32_t seed)
{
	return (offset * 131 + (offset >> 8) * 17 + (offset >> 16) * 29 + seed * 7) & 0xff;
}

void fill(uint8_t *bytes, size_t count, size_t offset, uint32_t seed)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = at(offset + i, seed);
}

bool matches(const uint8_t *bytes, size_t count, size_t offset, uint32_t seed)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != at(offset + i, seed))
			return false;
	return true;
}

long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool ready_until(int file, short events, long end)
{
	struct pollfd polled = {.fd = file, .events = events};
	long left = end - milliseconds();

	return left > 0 && poll(&polled, 1, left) > 0;
}

socklen_t address_of(union address *to, int family, const char *text, int port)
{
	memset(to, 0, sizeof(*to));
	to->any.sa_family = family;
	if (family == AF_INET) {
		to->four.sin_port = htons(port);
		if (text && inet_pton(family, text, &to->four.sin_addr) != 1)
			usage("an IPv4 address is expected");
		return sizeof(to->four);
	}
	to->six.sin6_port = htons(port);
	if (text && inet_pton(family, text, &to->six.sin6_addr) != 1)
		usage("an IPv6 address is expected");
	return sizeof(to->six);
}

void print_from(const union address *from)
{
	char text[INET6_ADDRSTRLEN];
	bool four = from->any.sa_family == AF_INET;
	const void *host = four ? (const void *)&from->four.sin_addr : &from->six.sin6_addr;

	printf(" from=%s port=%d", inet_ntop(from->any.sa_family, host, text, sizeof(text)),
	       ntohs(four ? from->four.sin_port : from->six.sin6_port));
}

void print_hex(const char *name, const uint8_t *bytes, size_t count)
{
	printf(" %s=", name);
	for (size_t i = 0; i < count; i++)
		printf("%02x", bytes[i]);
	if (!count)
		printf("none");
}

void print_peer(int socket)
{
	char label[4096];
	socklen_t length = sizeof(label) - 1;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERSEC, label, &length))
		length = 0;
	label[length] = 0;
	printf(" label=%s", *label ? label : "none");
}

void set(int socket, int level, int name, int value, const char *what)
{
	if (setsockopt(socket, level, name, &value, sizeof(value)))
		fail(what);
}

static void set_options(int socket, const struct words *words)
{
	uint8_t bytes[256];
	size_t count = strlen(words->options) / 2;

	if (count > sizeof(bytes))
		usage("too many options");
	for (size_t i = 0; i < count; i++)
		if (sscanf(words->options + 2 * i, "%2hhx", bytes + i) != 1)
			usage("options are hexadecimal");
	if (words->family == AF_INET ? setsockopt(socket, IPPROTO_IP, IP_OPTIONS, bytes, count)
				     : setsockopt(socket, IPPROTO_IPV6, IPV6_HOPOPTS, bytes, count))
		fail("set IP options");
}

static void set_fragmenting(int socket, const struct words *words)
{
	bool four = words->family == AF_INET, never = words->fragment > 0;

	if (four)
		set(socket, IPPROTO_IP, IP_MTU_DISCOVER, never ? IP_PMTUDISC_DO : IP_PMTUDISC_DONT,
		    "IP_MTU_DISCOVER");
	else
		set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
		    never ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_DONT, "IPV6_MTU_DISCOVER");
	if (!four && never)
		set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1, "IPV6_DONTFRAG");
}

int open_socket(const struct words *words, const char *protocol)
{
	bool four = words->family == AF_INET;
	int made;

	if (!strcmp(protocol, "udp"))
		made = socket(words->family, SOCK_DGRAM, 0);
	else if (!strcmp(protocol, "tcp"))
		made = socket(words->family, SOCK_STREAM, 0);
	else if (!strcmp(protocol, "icmp"))
		made = socket(words->family, SOCK_RAW,
			      four ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6);
	else
		usage("the protocol is udp, tcp or icmp");
	if (made < 0)
		fail("socket");
	set(made, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	if (!four && strcmp(protocol, "icmp"))
		set(made, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
	if (words->options)
		set_options(made, words);
	if (words->fragment)
		set_fragmenting(made, words);
	if (words->mark) {
		set(made, SOL_SOCKET, SO_PRIORITY, words->mark, "SO_PRIORITY");
		set(made, SOL_SOCKET, SO_MARK, words->mark, "SO_MARK");
	}
	if (words->gso)
		set(made, SOL_UDP, UDP_SEGMENT, words->gso, "UDP_SEGMENT");
	return made;
}
