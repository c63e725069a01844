/* Frames that an attacker has kept from a wire, and what he makes of them. */
#ifndef FRAME_H
#define FRAME_H

#include "talk.h"

#define LINK_HEADER 14
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define UDP_HEADER 8
#define TCP_HEADER 20
#define FRAME 2048

struct frame {
	uint8_t bytes[FRAME];
	size_t count;
	size_t transport; /* where UDP or TCP begins, whatever the headers before it say */
	bool four;
};

/* A device on which whatever is written leaves as it is. */
struct injection {
	int socket;
	bool bypasses; /* no filter of the machine sees it */
	long sent, failed;
};

/* Reads a frame from its bytes. Returns false if it is not IP. */
bool read_frame(struct frame *frame);
/* The options of IPv4, or the hop-by-hop header of IPv6, and their length; and the label in them.
 */
uint8_t *options_of(struct frame *frame);
size_t options_size(const struct frame *frame);
uint8_t *label_of(struct frame *frame);

/* Replaces the options, or the hop-by-hop header, whose first byte does not matter. */
void set_options(struct frame *frame, const uint8_t *options, size_t size);
/* Replaces what UDP carries by the pattern of this length. */
void set_payload(struct frame *frame, size_t length);
/* Makes of a datagram the beginning of a connection. */
void set_beginning(struct frame *frame, uint16_t port, uint16_t to);
/* Makes lengths and checksums right. */
void finish(struct frame *frame);
/* The checksum of IPv4's header alone, as long as it says it is. */
void finish_header(struct frame *frame);

struct injection open_injection(const char *device);
void inject_frame(struct injection *injection, const struct frame *frame);

/* Numbers that are the same each time. */
uint32_t random_number(void);

/* Sends packets with malformed options, for two ports in turn. */
void send_malformed(struct injection *injection, const struct frame *seed, long count);
/* A label of its own for each number: CIPSO or CALIPSO, of domain 1, at s3. Returns its length. */
size_t level_option(bool four, uint32_t number, uint8_t *options);

int keep(const struct words *words);
int inject(const struct words *words);

#endif
