/* What the files of talk share: payloads, addresses, the clock, labels. */
#ifndef TALK_H
#define TALK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The largest payload of a datagram, and room for its headers. */
#define LARGEST 65536

/* The words of a command line: the options by name, the rest in order. */
struct words {
	char **rest;
	int count;
	int family;	       /* AF_INET or AF_INET6 */
	const char *namespace; /* a name below /run/netns, or a path */
	const char *options;   /* hexadecimal: IP options, or a hop-by-hop header */
	const char *to;	       /* bulk: connect there instead of listening */
	int gso;	       /* bytes of a segment, 0: none */
	int bind;	       /* the port that is sent from, 0: any */
	int mark;	       /* SO_MARK and SO_PRIORITY, 0: none */
	int wait;	       /* milliseconds for answers */
	int fragment;	       /* 1: IP never fragments (--df); -1: it may (--no-df); 0: as usual */
};

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* Prints why, and ends with status 2 (wrong use) or 1 (the kernel refused). */
void usage(const char *why) __attribute__((noreturn));
void fail(const char *what) __attribute__((noreturn));

/* An argument as a number, and one that may be missing. */
int number(const char *text);
int number_or(const struct words *words, int at, int otherwise);

/* Bytes from this offset of the pattern that belongs to a seed. A datagram's seed is its length, so
 * that it tells whether it is whole; a stream's is 0. */
void fill(uint8_t *bytes, size_t count, size_t offset, uint32_t seed);
bool matches(const uint8_t *bytes, size_t count, size_t offset, uint32_t seed);

long milliseconds(void);
/* Waits for events until a time. Returns false when it has come. */
bool ready_until(int file, short events, long end);

/* An address of this family; no text is any address. */
socklen_t address_of(union address *to, int family, const char *text, int port);
void print_from(const union address *from);
void print_hex(const char *name, const uint8_t *bytes, size_t count);
/* The peer's context of a connection, as SO_PEERSEC has it. */
void print_peer(int socket);

/* A socket of a protocol's name, with the options of the command line. */
int open_socket(const struct words *words, const char *protocol);
void set(int socket, int level, int name, int value, const char *what);

int receive(const struct words *words);
int echo(const struct words *words);
int transmit(const struct words *words);
int begin(const struct words *words);
int offload(const struct words *words);
int sizes(const struct words *words);
int bulk(const struct words *words);
int capture(const struct words *words);
int meet(const struct words *words);
int spaces(const struct words *words);
int time_trips(const struct words *words);
int sink(const struct words *words);
int time_stream(const struct words *words);
int time_connections(const struct words *words);
int away(const struct words *words);

#endif
