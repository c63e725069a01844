/* A meeting point of two machines on a wire. It is below IP, so that no label and no policy that is
 * being tested is in its way. */
#define _GNU_SOURCE
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* IEEE 802's number for experiments. */
#define ETHERTYPE 0x88b5
#define INTERVAL 50
/* How often the last word is said, because nobody confirms it. */
#define LAST_WORDS 5

struct greeting {
	char name[48];
	uint8_t heard; /* whether the sender has heard the other one */
};

struct wire {
	int socket;
	struct sockaddr_ll everyone;
	struct greeting own;
};

static struct wire open_wire(const char *device, const char *name)
{
	struct wire wire = {.socket = socket(AF_PACKET, SOCK_DGRAM, htons(ETHERTYPE)),
			    .everyone = {.sll_family = AF_PACKET,
					 .sll_protocol = htons(ETHERTYPE),
					 .sll_ifindex = if_nametoindex(device),
					 .sll_halen = ETH_ALEN}};

	memset(wire.everyone.sll_addr, 0xff, ETH_ALEN);
	if (!wire.everyone.sll_ifindex)
		usage("there is no such device");
	if (strlen(name) >= sizeof(wire.own.name))
		usage("the name is too long");
	strcpy(wire.own.name, name);
	if (wire.socket < 0 ||
	    bind(wire.socket, (struct sockaddr *)&wire.everyone, sizeof(wire.everyone)))
		fail("packet socket");
	return wire;
}

/* Lost greetings are said again, so an error of the device does not matter. */
static void greet(const struct wire *wire)
{
	sendto(wire->socket, &wire->own, sizeof(wire->own), 0,
	       (const struct sockaddr *)&wire->everyone, sizeof(wire->everyone));
}

/* Hears what has come. Returns true if the other one has heard this one. */
static bool hear(struct wire *wire)
{
	struct greeting other;
	long until = milliseconds() + INTERVAL;
	bool done = false;

	while (!done && ready_until(wire->socket, POLLIN, until)) {
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		ssize_t count = recvfrom(wire->socket, &other, sizeof(other), 0,
					 (struct sockaddr *)&from, &size);

		/* Short frames are padded. */
		if (count < (ssize_t)sizeof(other) || from.sll_pkttype == PACKET_OUTGOING ||
		    strncmp(other.name, wire->own.name, sizeof(other.name)))
			continue;
		wire->own.heard = 1;
		done = other.heard;
	}
	return done;
}

int meet(const struct words *words)
{
	struct wire wire = open_wire(words->rest[0], words->rest[1]);
	long end = milliseconds() + 1000L * number_or(words, 2, 60);
	bool met = false;

	while (!met && milliseconds() < end) {
		greet(&wire);
		met = hear(&wire);
	}
	for (int i = 0; met && i < LAST_WORDS; i++)
		greet(&wire);
	printf("%s %s\n", met ? "met at" : "nobody came to", words->rest[1]);
	return !met;
}
