/* The beginning of a connection, with so much data that IP must cut it to fragments: TCP itself
 * never sends such packets. Tells whether the other side answers. */
#define _GNU_SOURCE
#include "talk.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define OWN_PORT 50000

static uint32_t sum(const uint8_t *bytes, size_t count, uint32_t before)
{
	for (size_t i = 0; i < count; i++)
		before += i & 1 ? bytes[i] : bytes[i] << 8;
	return before;
}

/* TCP's checksum, with the addresses that it covers. */
static uint16_t checksum(const union address *ends, int family, const uint8_t *bytes, size_t count)
{
	uint32_t all = IPPROTO_TCP + count;

	for (int end = 0; end < 2; end++)
		all = family == AF_INET ? sum((const uint8_t *)&ends[end].four.sin_addr, 4, all)
					: sum((const uint8_t *)&ends[end].six.sin6_addr, 16, all);
	all = sum(bytes, count, all);
	all = (all & 0xffff) + (all >> 16);
	return ~(all + (all >> 16));
}

/* Whether a packet says that the other side has accepted the connection. */
static bool is_accepted(const uint8_t *bytes, ssize_t count, const struct words *words, int port)
{
	size_t header = words->family == AF_INET ? (bytes[0] & 15) * 4 : 0;
	const struct tcphdr *tcp = (const void *)(bytes + header);

	return (size_t)count >= header + sizeof(*tcp) &&
	       tcp->source == htons(number(words->rest[2])) && tcp->dest == htons(port) &&
	       tcp->syn && tcp->ack;
}

int begin(const struct words *words)
{
	static uint8_t bytes[LARGEST];
	int own = socket(words->family, SOCK_RAW, IPPROTO_TCP), length = number(words->rest[3]);
	int port = words->bind ? words->bind : OWN_PORT;
	struct tcphdr *tcp = (void *)bytes;
	union address ends[2] = {};
	socklen_t size = address_of(&ends[1], words->family, words->rest[1], 0),
		  mine = sizeof(ends[0]);
	long end = milliseconds() + words->wait;
	bool accepted = false;

	if (own < 0 || connect(own, &ends[1].any, size) || getsockname(own, &ends[0].any, &mine))
		fail("a raw socket");
	tcp->source = htons(port);
	tcp->dest = htons(number(words->rest[2]));
	tcp->seq = htonl(milliseconds());
	tcp->doff = sizeof(*tcp) / 4;
	tcp->syn = 1;
	tcp->window = htons(1024);
	fill(bytes + sizeof(*tcp), length, 0, length);
	length += sizeof(*tcp);
	tcp->check = htons(checksum(ends, words->family, bytes, length));
	if (send(own, bytes, length, 0) != length)
		fail("send");
	while (!accepted && ready_until(own, POLLIN, end)) {
		ssize_t count = recv(own, bytes, sizeof(bytes), MSG_DONTWAIT);

		accepted = count > 0 && is_accepted(bytes, count, words, port);
	}
	printf("begin%s length=%s accepted=%s\n", words->family == AF_INET ? "4" : "6",
	       words->rest[3], accepted ? "yes" : "no");
	return 0;
}
