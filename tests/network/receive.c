/* Receives datagrams, connections or echo requests, and tells of each what arrived with which
 * label; or sends back what arrives. */
#define _GNU_SOURCE
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef SCM_SECURITY
#define SCM_SECURITY 0x03
#endif
/* The largest kernel messages beside a datagram: a context and options. */
#define LARGEST_CONTROL 4096

struct received {
	uint8_t bytes[LARGEST];
	uint8_t control[LARGEST_CONTROL] __attribute__((aligned(8)));
	ssize_t count;
	union address from;
	struct msghdr message;
};

static void listen_to(int socket, const struct words *words, const char *protocol)
{
	union address own;
	bool four = words->family == AF_INET, icmp = !strcmp(protocol, "icmp");
	socklen_t length = address_of(&own, words->family, NULL, icmp ? 0 : number(words->rest[2]));

	if (four) {
		set(socket, IPPROTO_IP, IP_PASSSEC, 1, "IP_PASSSEC");
		set(socket, IPPROTO_IP, IP_RECVOPTS, 1, "IP_RECVOPTS");
	} else {
		set(socket, IPPROTO_IPV6, IPV6_RECVHOPOPTS, 1, "IPV6_RECVHOPOPTS");
	}
	set(socket, SOL_SOCKET, SO_RCVBUF, 4 << 20, "SO_RCVBUF");
	if (!icmp && bind(socket, &own.any, length))
		fail("bind");
	if (!strcmp(protocol, "tcp") && listen(socket, 64))
		fail("listen");
	puts("ready");
}

static bool next(int socket, struct received *got)
{
	struct iovec part = {got->bytes, sizeof(got->bytes)};

	got->message = (struct msghdr){.msg_name = &got->from,
				       .msg_namelen = sizeof(got->from),
				       .msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = got->control,
				       .msg_controllen = sizeof(got->control)};
	got->count = recvmsg(socket, &got->message, 0);
	if (got->count < 0)
		printf("error=%s\n", strerrorname_np(errno));
	return got->count >= 0;
}

/* A datagram's label and options, as the kernel passes them beside it. */
static void print_control(struct received *got)
{
	struct cmsghdr *one;
	const char *label = NULL;
	int length = 0;
	const uint8_t *options = NULL;
	size_t count = 0;

	for (one = CMSG_FIRSTHDR(&got->message); one; one = CMSG_NXTHDR(&got->message, one)) {
		if (one->cmsg_level == IPPROTO_IP && one->cmsg_type == SCM_SECURITY) {
			label = (const char *)CMSG_DATA(one);
			length = one->cmsg_len - CMSG_LEN(0);
		} else if ((one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_RECVOPTS) ||
			   (one->cmsg_level == IPPROTO_IPV6 && one->cmsg_type == IPV6_HOPOPTS)) {
			options = CMSG_DATA(one);
			count = one->cmsg_len - CMSG_LEN(0);
		}
	}
	if (label)
		printf(" label=%.*s", length, label);
	else
		printf(" label=none");
	print_hex("options", options, count);
}

static void datagrams(int socket, const struct words *words, long end)
{
	static struct received got;

	while (ready_until(socket, POLLIN, end)) {
		if (!next(socket, &got))
			continue;
		printf("udp%c length=%zd payload=%s", *words->rest[1], got.count,
		       matches(got.bytes, got.count, 0, got.count) ? "good" : "bad");
		print_from(&got.from);
		print_control(&got);
		putchar('\n');
	}
}

/* An echo request behind its IP header, which only IPv4 passes on. NULL: something else. */
static const uint8_t *request(const struct received *got, bool four, size_t *count, int wanted)
{
	size_t header = four ? (got->bytes[0] & 15) * 4 : 0;
	const uint8_t *icmp = got->bytes + header;
	uint8_t type = four ? ICMP_ECHO : ICMP6_ECHO_REQUEST;

	if ((size_t)got->count < header + 8 || icmp[0] != type)
		return NULL;
	if (wanted && wanted != (icmp[4] << 8 | icmp[5]))
		return NULL;
	*count = got->count - header - 8;
	return icmp;
}

static void requests(int socket, const struct words *words, long end)
{
	static struct received got;
	bool four = words->family == AF_INET;
	int wanted = number(words->rest[2]);

	while (ready_until(socket, POLLIN, end)) {
		const uint8_t *icmp;
		size_t count;

		if (!next(socket, &got))
			continue;
		icmp = request(&got, four, &count, wanted);
		if (!icmp)
			continue;
		printf("icmp%c length=%zu payload=%s", four ? '4' : '6', count,
		       matches(icmp + 8, count, 0, count) ? "good" : "bad");
		print_from(&got.from);
		printf(" id=%d", icmp[4] << 8 | icmp[5]);
		print_control(&got);
		putchar('\n');
	}
}

/* Reads a stream to its end. Returns its length, negative if it is not the pattern. */
static long whole(int connection, long end)
{
	static uint8_t bytes[LARGEST];
	size_t total = 0;

	while (ready_until(connection, POLLIN, end)) {
		ssize_t count = read(connection, bytes, sizeof(bytes));

		if (count < 0)
			return -1;
		if (!count)
			return total;
		if (!matches(bytes, count, total, 0))
			return -1;
		total += count;
	}
	return -1;
}

static void connections(int listener, const struct words *words, long end)
{
	while (ready_until(listener, POLLIN, end)) {
		uint8_t options[40];
		socklen_t length = sizeof(options);
		union address from;
		socklen_t size = sizeof(from);
		int connection = accept(listener, &from.any, &size);
		long total;

		if (connection < 0)
			continue;
		total = whole(connection, end);
		printf("tcp%c length=%ld payload=%s", *words->rest[1], total,
		       total < 0 ? "bad" : "good");
		print_from(&from);
		print_peer(connection);
		if (words->family != AF_INET ||
		    getsockopt(connection, IPPROTO_IP, IP_OPTIONS, options, &length))
			length = 0;
		print_hex("options", options, length);
		putchar('\n');
		if (write(connection, total < 0 ? "bad" : "good", total < 0 ? 3 : 4) < 0)
			printf("error=%s\n", strerrorname_np(errno));
		close(connection);
	}
}

int receive(const struct words *words)
{
	long end = milliseconds() + 1000L * number_or(words, 3, 5);
	const char *protocol = words->rest[0];
	int socket = open_socket(words, protocol);

	listen_to(socket, words, protocol);
	if (!strcmp(protocol, "udp"))
		datagrams(socket, words, end);
	else if (!strcmp(protocol, "tcp"))
		connections(socket, words, end);
	else
		requests(socket, words, end);
	puts("end");
	return 0;
}

static void return_stream(int listener, long end)
{
	static uint8_t bytes[LARGEST];
	int connection = accept(listener, NULL, NULL);
	ssize_t count;

	while (connection >= 0 && ready_until(connection, POLLIN, end)) {
		count = read(connection, bytes, sizeof(bytes));
		if (count <= 0 || write(connection, bytes, count) != count)
			break;
	}
	close(connection);
}

int echo(const struct words *words)
{
	static struct received got;
	long end = milliseconds() + 1000L * number_or(words, 3, 5), count = 0;
	const char *protocol = words->rest[0];
	bool stream = !strcmp(protocol, "tcp");
	int socket = open_socket(words, protocol);

	listen_to(socket, words, protocol);
	while (ready_until(socket, POLLIN, end)) {
		if (stream)
			return_stream(socket, end);
		else if (!next(socket, &got) || sendto(socket, got.bytes, got.count, 0,
						       &got.from.any, got.message.msg_namelen) < 0)
			continue;
		count++;
	}
	printf("end count=%ld\n", count);
	return 0;
}
