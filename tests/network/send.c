/* Sends patterns, and tells what the kernel and the other side answer. */
#define _GNU_SOURCE
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_CONTROL 512

static const char *name(int error)
{
	return error ? strerrorname_np(error) : "none";
}

/* One error that the kernel or a router has reported about what was sent. */
static bool print_error(int socket)
{
	uint8_t control[LARGEST_CONTROL] __attribute__((aligned(8))), byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *one;

	if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
		const struct sock_extended_err *error = (const void *)CMSG_DATA(one);

		if (one->cmsg_type != IP_RECVERR && one->cmsg_type != IPV6_RECVERR)
			continue;
		printf(" error=%s", name(error->ee_errno));
		if (error->ee_origin != SO_EE_ORIGIN_LOCAL)
			printf(" icmp=%d/%d", error->ee_type, error->ee_code);
		printf(" info=%u", error->ee_info);
	}
	return true;
}

/* A datagram that came back: an echo server's, or the kernel's echo reply. */
static bool is_reply(const uint8_t *bytes, ssize_t count, const struct words *words, bool icmp)
{
	bool four = words->family == AF_INET;
	size_t header = icmp && four ? (bytes[0] & 15) * 4 : 0;
	const uint8_t *reply = bytes + header;

	if (!icmp)
		return matches(bytes, count, 0, count);
	if ((size_t)count < header + 8 || reply[0] != (four ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY))
		return false;
	if ((reply[4] << 8 | reply[5]) != number(words->rest[3]))
		return false;
	count -= header + 8;
	return matches(reply + 8, count, 0, count);
}

/* Waits for as many answers as were sent. */
static void answers(int socket, const struct words *words, bool icmp, int wanted)
{
	static uint8_t bytes[LARGEST];
	long end = milliseconds() + words->wait;
	int replies = 0;

	while (replies < wanted && ready_until(socket, POLLIN, end)) {
		ssize_t count;

		if (print_error(socket))
			continue;
		count = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (count < 0 && errno != EAGAIN)
			printf(" error=%s", name(errno));
		else if (count >= 0 && is_reply(bytes, count, words, icmp))
			replies++;
	}
	while (print_error(socket))
		continue;
	printf(" replies=%d\n", replies);
}

/* Each segment of a GSO send is a datagram with its own length. */
static void pattern(uint8_t *bytes, size_t length, size_t segment)
{
	for (size_t done = 0; done < length;) {
		size_t count = segment && length - done > segment ? segment : length - done;

		fill(bytes + done, count, 0, count);
		done += count;
	}
}

/* An echo request's head; the kernel itself fills in the checksum of ICMPv6. */
static size_t request(uint8_t *bytes, size_t length, const struct words *words, int sequence)
{
	bool four = words->family == AF_INET;
	uint32_t sum = 0;
	int id = number(words->rest[3]);

	bytes[0] = four ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	bytes[1] = bytes[2] = bytes[3] = 0;
	bytes[4] = id >> 8, bytes[5] = id, bytes[6] = sequence >> 8, bytes[7] = sequence;
	fill(bytes + 8, length, 0, length);
	bytes[8 + length] = 0;
	for (size_t i = 0; four && i < length + 8; i += 2)
		sum += bytes[i] << 8 | bytes[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	if (four)
		bytes[2] = sum >> 8, bytes[3] = sum;
	return length + 8;
}

static int datagrams(int socket, const struct words *words, bool icmp)
{
	static uint8_t bytes[LARGEST + 16];
	size_t length = number(words->rest[4]);
	int count = number_or(words, 5, 1), sent = 0, error = 0;

	if (length > LARGEST)
		usage("a datagram is not so large");
	for (int i = 0; i < count; i++) {
		size_t size = length;

		if (icmp)
			size = request(bytes, length, words, i);
		else
			pattern(bytes, length, words->gso);
		if (send(socket, bytes, size, 0) == (ssize_t)size)
			sent++;
		else
			error = errno;
	}
	printf("%s%s length=%zu sent=%d errno=%s", words->rest[0], words->rest[1], length, sent,
	       name(error));
	answers(socket, words, icmp,
		words->gso ? (length + words->gso - 1) / words->gso : (size_t)sent);
	return sent != count;
}

static bool write_all(int socket, size_t length, long end)
{
	static uint8_t bytes[LARGEST];

	for (size_t done = 0; done < length;) {
		size_t count = length - done < sizeof(bytes) ? length - done : sizeof(bytes);
		ssize_t written;

		fill(bytes, count, done, 0);
		written = write(socket, bytes, count);
		if (written >= 0)
			done += written;
		else if (errno != EAGAIN)
			return false;
		else if (!ready_until(socket, POLLOUT, end))
			return errno = ETIMEDOUT, false;
	}
	return true;
}

/* Connects, sends, and waits for what the other side says of it. */
static int stream(int socket, const struct words *words, const union address *to, socklen_t size)
{
	long end = milliseconds() + words->wait;
	size_t length = number(words->rest[4]);
	char said[16] = "";
	socklen_t width = sizeof(int);
	int error = 0;

	fcntl(socket, F_SETFL, O_NONBLOCK);
	if (connect(socket, &to->any, size) && errno != EINPROGRESS)
		error = errno;
	else if (!ready_until(socket, POLLOUT, end))
		error = ETIMEDOUT;
	else
		getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &width);
	printf("tcp%s length=%zu connect=%s", words->rest[1], length, name(error));
	if (error) {
		putchar('\n');
		return 1;
	}
	print_peer(socket);
	if (!write_all(socket, length, end) || shutdown(socket, SHUT_WR))
		error = errno;
	else if (!ready_until(socket, POLLIN, end) || read(socket, said, sizeof(said) - 1) < 0)
		error = errno ? errno : ETIMEDOUT;
	printf(" errno=%s reply=%s\n", name(error), *said ? said : "none");
	return error != 0;
}

int transmit(const struct words *words)
{
	const char *protocol = words->rest[0];
	bool icmp = !strcmp(protocol, "icmp"), four = words->family == AF_INET;
	int socket = open_socket(words, protocol);
	union address own, to;
	socklen_t size = address_of(&own, words->family, NULL, words->bind);

	if (words->bind && bind(socket, &own.any, size))
		fail("bind");
	address_of(&to, words->family, words->rest[2], icmp ? 0 : number(words->rest[3]));
	if (!strcmp(protocol, "tcp"))
		return stream(socket, words, &to, size);
	set(socket, four ? IPPROTO_IP : (int)IPPROTO_IPV6, four ? IP_RECVERR : IPV6_RECVERR, 1,
	    "IP_RECVERR");
	set(socket, SOL_SOCKET, SO_SNDBUF, 4 << 20, "SO_SNDBUF");
	if (connect(socket, &to.any, size))
		fail("connect");
	return datagrams(socket, words, icmp);
}
