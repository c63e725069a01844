/* Packets as they are on a device: headers with their options, and a hash of what they carry. */
#define _GNU_SOURCE
#include "talk.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>

#define IPV6_HEADER 40

/* FNV-1a, of 64 bits. */
static uint64_t hash(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < count; i++)
		value = (value ^ bytes[i]) * 0x100000001b3;
	return value;
}

/* Bytes of the header with its options: of IPv6, those of a hop-by-hop header. */
static size_t header_of(const uint8_t *packet, size_t count, bool four)
{
	size_t size = four ? (packet[0] & 15) * 4 : IPV6_HEADER;

	if (!four && count >= size + 8 && packet[6] == IPPROTO_HOPOPTS)
		size += (packet[size + 1] + 1) * 8;
	return size < count ? size : count;
}

static void print_packet(const uint8_t *packet, size_t count, bool out)
{
	bool four = packet[0] >> 4 == 4;
	size_t header = header_of(packet, count, four);

	printf("%s ip=%d bytes=%zu", out ? "out" : "in", four ? 4 : 6, count);
	print_hex("header", packet, header);
	printf(" rest=%016lx\n", hash(packet + header, count - header));
}

int capture(const struct words *words)
{
	static uint8_t bytes[LARGEST];
	long end = milliseconds() + 1000L * number(words->rest[1]);
	struct sockaddr_ll device = {.sll_family = AF_PACKET,
				     .sll_protocol = htons(ETH_P_ALL),
				     .sll_ifindex = if_nametoindex(words->rest[0])};
	/* SOCK_DGRAM: without the link's header, if there is one. */
	int taken = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));

	if (!device.sll_ifindex)
		usage("there is no such device");
	if (taken < 0 || bind(taken, (struct sockaddr *)&device, sizeof(device)))
		fail("packet socket");
	set(taken, SOL_SOCKET, SO_RCVBUF, 8 << 20, "SO_RCVBUF");
	puts("ready");
	while (ready_until(taken, POLLIN, end)) {
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		ssize_t count =
			recvfrom(taken, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size);
		int protocol = ntohs(from.sll_protocol);

		if (count >= 20 && (protocol == ETH_P_IP || protocol == ETH_P_IPV6))
			print_packet(bytes, count, from.sll_pkttype == PACKET_OUTGOING);
	}
	puts("end");
	return 0;
}
