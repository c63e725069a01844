/* Sends a frame that was kept, changed as an attacker would change it. */
#define _GNU_SOURCE
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a sealed label. */
#define SEALED 22
#define NODE 6
#define CONTEXT 10
#define MAC 14

/* Another number of an address's last byte: the receiver has the address 10 above its own. */
#define OTHER_SOURCE 0x20
#define OTHER_DESTINATION 10

struct attack {
	struct injection to;
	struct frame seed;
	long count;
};

static void send_finished(struct attack *attack, struct frame *frame)
{
	finish(frame);
	inject_frame(&attack->to, frame);
}

static void same(struct attack *attack)
{
	for (long i = 0; i < attack->count; i++) {
		struct frame frame = attack->seed;

		send_finished(attack, &frame);
	}
}

/* As it was, to the last byte. */
static void replay(struct attack *attack)
{
	for (long i = 0; i < attack->count; i++)
		inject_frame(&attack->to, &attack->seed);
}

/* Each byte of the label by itself. */
static void each(struct attack *attack)
{
	for (size_t byte = 0; byte < SEALED; byte++) {
		struct frame frame = attack->seed;

		label_of(&frame)[byte] ^= 1;
		send_finished(attack, &frame);
	}
}

static void ports(struct attack *attack)
{
	for (int place = 1; place <= 3; place += 2) {
		struct frame frame = attack->seed;

		frame.bytes[frame.transport + place] ^= 1;
		send_finished(attack, &frame);
	}
}

static void addresses(struct attack *attack)
{
	size_t source = LINK_HEADER + (attack->seed.four ? 15 : 23);
	size_t destination = LINK_HEADER + (attack->seed.four ? 19 : 39);
	struct frame frame = attack->seed;

	frame.bytes[source] += OTHER_SOURCE;
	send_finished(attack, &frame);
	frame = attack->seed;
	frame.bytes[destination] += OTHER_DESTINATION;
	send_finished(attack, &frame);
}

/* The nodes next to the sender's: one of them is the receiver's. */
static void nodes(struct attack *attack)
{
	for (int step = -1; step <= 1; step += 2) {
		struct frame frame = attack->seed;

		label_of(&frame)[NODE + 1] += step;
		send_finished(attack, &frame);
	}
}

static void strip(struct attack *attack)
{
	set_options(&attack->seed, NULL, 0);
	same(attack);
}

static void fill_randomly(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = random_number();
}

/* Guesses of the seal, for the same context or for another one each time. */
static void guess(struct attack *attack, size_t from)
{
	for (long i = 0; i < attack->count; i++) {
		struct frame frame = attack->seed;

		fill_randomly(label_of(&frame) + from, SEALED - from);
		send_finished(attack, &frame);
	}
}

static void seals(struct attack *attack)
{
	guess(attack, MAC);
}

static void contexts(struct attack *attack)
{
	guess(attack, CONTEXT);
}

/* Another level each time: `beginnings` of connections to ports from 7100 on, or datagrams. */
static void send_levels(struct attack *attack, int listeners)
{
	for (long i = 0; i < attack->count; i++) {
		struct frame frame = attack->seed;
		uint8_t options[40];
		size_t size = level_option(frame.four, i, options);

		set_options(&frame, options, size);
		for (int port = 0; port < listeners; port++) {
			set_beginning(&frame, 20000 + i % 10000, 7100 + port);
			send_finished(attack, &frame);
		}
		if (!listeners)
			send_finished(attack, &frame);
	}
}

static void levels(struct attack *attack)
{
	send_levels(attack, 0);
}

static void beginnings(struct attack *attack)
{
	send_levels(attack, 10);
}

static void malformed(struct attack *attack)
{
	send_malformed(&attack->to, &attack->seed, attack->count);
}

int inject(const struct words *words)
{
	static const struct {
		const char *name;
		void (*run)(struct attack *);
	} changes[] = {{"same", same},	   {"replay", replay},	       {"each", each},
		       {"ports", ports},   {"addresses", addresses},   {"nodes", nodes},
		       {"strip", strip},   {"seals", seals},	       {"contexts", contexts},
		       {"levels", levels}, {"beginnings", beginnings}, {"malformed", malformed}};
	struct attack attack = {.count = number_or(words, 4, 1)};
	FILE *file = fopen(words->rest[1], "r");
	size_t length = number(words->rest[2]);

	attack.seed.count = file ? fread(attack.seed.bytes, 1, FRAME, file) : 0;
	if (!file || !read_frame(&attack.seed))
		usage("there is no such frame");
	fclose(file);
	/* 0: it keeps what it carries. */
	if (length)
		set_payload(&attack.seed, length);
	attack.to = open_injection(words->rest[0]);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (strcmp(changes[i].name, words->rest[3]))
			continue;
		changes[i].run(&attack);
		printf("%s sent=%ld failed=%ld\n", words->rest[3], attack.to.sent,
		       attack.to.failed);
		return attack.to.failed != 0;
	}
	usage("there is no such change");
}
