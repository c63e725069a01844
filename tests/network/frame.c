/* Frames: their parts, their checksums, and how they get to the wire. */
#define _GNU_SOURCE
#include "frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef PACKET_QDISC_BYPASS
#define PACKET_QDISC_BYPASS 20
#endif

static uint8_t *ip_of(struct frame *frame)
{
	return frame->bytes + LINK_HEADER;
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8, at[1] = value;
}

uint8_t *options_of(struct frame *frame)
{
	return ip_of(frame) + (frame->four ? IPV4_HEADER : IPV6_HEADER);
}

size_t options_size(const struct frame *frame)
{
	const uint8_t *ip = frame->bytes + LINK_HEADER;

	if (frame->four)
		return (ip[0] & 15) * 4 - IPV4_HEADER;
	return ip[6] == IPPROTO_HOPOPTS ? (ip[IPV6_HEADER + 1] + 1) * 8 : 0;
}

uint8_t *label_of(struct frame *frame)
{
	return options_of(frame) + (frame->four ? 0 : 2);
}

bool read_frame(struct frame *frame)
{
	int protocol = frame->bytes[12] << 8 | frame->bytes[13];

	frame->four = protocol == ETH_P_IP;
	if (!frame->four && protocol != ETH_P_IPV6)
		return false;
	frame->transport = options_of(frame) - frame->bytes + options_size(frame);
	return frame->count >= frame->transport + UDP_HEADER;
}

void set_options(struct frame *frame, const uint8_t *options, size_t size)
{
	size_t was = options_size(frame), rest = frame->count - frame->transport;
	uint8_t *ip = ip_of(frame), *at = options_of(frame), next;

	next = was && !frame->four ? at[0] : ip[6];
	memmove(at + size, frame->bytes + frame->transport, rest);
	memcpy(at, options, size);
	frame->transport = at - frame->bytes + size;
	frame->count = frame->transport + rest;
	if (frame->four) {
		ip[0] = 0x40 | (IPV4_HEADER + size) / 4;
	} else {
		ip[6] = size ? IPPROTO_HOPOPTS : next;
		if (size)
			at[0] = next, at[1] = size / 8 - 1;
	}
}

void set_payload(struct frame *frame, size_t length)
{
	fill(frame->bytes + frame->transport + UDP_HEADER, length, 0, length);
	frame->count = frame->transport + UDP_HEADER + length;
}

static uint32_t sum(const uint8_t *bytes, size_t count, uint32_t before)
{
	for (size_t i = 0; i < count; i++)
		before += i & 1 ? bytes[i] : bytes[i] << 8;
	return before;
}

static uint16_t folded(uint32_t all)
{
	all = (all & 0xffff) + (all >> 16);
	return ~(all + (all >> 16));
}

/* UDP's checksum or TCP's, with the addresses that it covers. */
static void finish_transport(struct frame *frame, uint8_t protocol)
{
	uint8_t *at = frame->bytes + frame->transport, *ip = ip_of(frame);
	size_t count = frame->count - frame->transport, place = protocol == IPPROTO_UDP ? 6 : 16;
	uint32_t all = protocol + count;

	if (protocol == IPPROTO_UDP)
		put16(at + 4, count);
	put16(at + place, 0);
	all = frame->four ? sum(ip + 12, 8, all) : sum(ip + 8, 32, all);
	put16(at + place, folded(sum(at, count, all)));
}

void finish_header(struct frame *frame)
{
	uint8_t *ip = ip_of(frame);

	put16(ip + 10, 0);
	put16(ip + 10, folded(sum(ip, (ip[0] & 15) * 4, 0)));
}

void finish(struct frame *frame)
{
	uint8_t *ip = ip_of(frame);
	uint8_t protocol = frame->four ? ip[9] : options_size(frame) ? options_of(frame)[0] : ip[6];

	if (protocol == IPPROTO_UDP || protocol == IPPROTO_TCP)
		finish_transport(frame, protocol);
	if (frame->four) {
		put16(ip + 2, frame->count - LINK_HEADER);
		finish_header(frame);
	} else {
		put16(ip + 4, frame->count - LINK_HEADER - IPV6_HEADER);
	}
}

void set_beginning(struct frame *frame, uint16_t port, uint16_t to)
{
	uint8_t *tcp = frame->bytes + frame->transport;

	memset(tcp, 0, TCP_HEADER);
	put16(tcp, port);
	put16(tcp + 2, to);
	tcp[12] = TCP_HEADER / 4 << 4;
	tcp[13] = 2; /* SYN */
	put16(tcp + 14, 1024);
	frame->count = frame->transport + TCP_HEADER;
	if (frame->four)
		ip_of(frame)[9] = IPPROTO_TCP;
	else if (options_size(frame))
		options_of(frame)[0] = IPPROTO_TCP;
	else
		ip_of(frame)[6] = IPPROTO_TCP;
}

uint32_t random_number(void)
{
	static uint32_t state = 0x12345678;

	state ^= state << 13;
	state ^= state >> 17;
	return state ^= state << 5;
}

struct injection open_injection(const char *device)
{
	struct injection injection = {.socket = socket(AF_PACKET, SOCK_RAW, 0)};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(device)};
	int yes = 1;

	if (injection.socket < 0 || bind(injection.socket, (struct sockaddr *)&to, sizeof(to)))
		fail("packet socket");
	injection.bypasses =
		!setsockopt(injection.socket, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes));
	if (!injection.bypasses)
		printf("bypass=%s ", strerrorname_np(errno));
	return injection;
}

void inject_frame(struct injection *injection, const struct frame *frame)
{
	/* The device may have no room for a moment. What a filter drops is refused likewise. */
	for (int attempt = 0; attempt < 1000; attempt++) {
		if (send(injection->socket, frame->bytes, frame->count, 0) >= 0) {
			injection->sent++;
			return;
		}
		if (!injection->bypasses || (errno != ENOBUFS && errno != EAGAIN))
			break;
		usleep(1000);
	}
	injection->failed++;
}

/* Whether a frame is what is to be kept: a datagram of this length, or any of this protocol. */
static bool is_wanted(struct frame *frame, uint8_t protocol, size_t length)
{
	const uint8_t *ip = frame->bytes + LINK_HEADER, *at;

	if (!read_frame(frame))
		return false;
	at = frame->bytes + frame->transport;
	if ((frame->four ? ip[9] : options_size(frame) ? *options_of(frame) : ip[6]) != protocol)
		return false;
	return protocol != IPPROTO_UDP || (size_t)(at[4] << 8 | at[5]) == length + UDP_HEADER;
}

int keep(const struct words *words)
{
	struct frame frame;
	uint8_t protocol = number(words->rest[2]);
	size_t length = number(words->rest[3]);
	long end = milliseconds() + 1000L * number_or(words, 4, 10);
	struct sockaddr_ll device = {.sll_family = AF_PACKET,
				     .sll_protocol = htons(ETH_P_ALL),
				     .sll_ifindex = if_nametoindex(words->rest[0])};
	int taken = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	FILE *file;

	if (taken < 0 || bind(taken, (struct sockaddr *)&device, sizeof(device)))
		fail("packet socket");
	puts("ready");
	while (ready_until(taken, POLLIN, end)) {
		ssize_t count = recv(taken, frame.bytes, sizeof(frame.bytes), 0);

		frame.count = count < 0 ? 0 : count;
		if (count < LINK_HEADER + IPV4_HEADER || !is_wanted(&frame, protocol, length))
			continue;
		file = fopen(words->rest[1], "w");
		if (!file || fwrite(frame.bytes, 1, frame.count, file) != frame.count ||
		    fclose(file))
			fail("write the frame");
		printf("kept bytes=%zu", frame.count);
		print_hex("options", options_of(&frame), options_size(&frame));
		putchar('\n');
		return 0;
	}
	puts("kept nothing");
	return 1;
}
