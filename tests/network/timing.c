/* What traffic takes: a datagram to and fro, a connection, a stream. */
#define _GNU_SOURCE
#include "talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A datagram that does not come back within so many milliseconds is lost. */
#define PATIENCE 1000

static long microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int connect_to(const struct words *words, const char *protocol)
{
	union address address;
	int port = number(words->rest[2]), socket = open_socket(words, protocol);
	socklen_t size = address_of(&address, words->family, words->rest[1], port);

	if (connect(socket, &address.any, size))
		fail("connect");
	return socket;
}

static int compare(const void *one, const void *other)
{
	long first = *(const long *)one, second = *(const long *)other;

	return (first > second) - (first < second);
}

int time_trips(const struct words *words)
{
	static uint8_t bytes[LARGEST];
	int socket = connect_to(words, "udp"), length = number(words->rest[3]),
	    count = number(words->rest[4]), back = 0;
	long *times = calloc(count + 1, sizeof(*times));

	for (int i = 0; i < count; i++) {
		long start = microseconds();

		if (send(socket, bytes, length, 0) == length &&
		    ready_until(socket, POLLIN, milliseconds() + PATIENCE) &&
		    recv(socket, bytes, sizeof(bytes), 0) == length)
			times[back++] = microseconds() - start;
	}
	qsort(times, back, sizeof(*times), compare);
	printf("trips length=%d lost=%d p50=%ld p95=%ld p99=%ld\n", length, count - back,
	       times[back / 2], times[back * 95 / 100], times[back * 99 / 100]);
	return back < count;
}

/* Takes one connection after another, and what comes by it. A byte says that all has come. */
int sink(const struct words *words)
{
	static uint8_t bytes[LARGEST];
	long end = milliseconds() + 1000L * number(words->rest[2]);
	union address address;
	socklen_t size = address_of(&address, words->family, NULL, number(words->rest[1]));
	int listener = open_socket(words, "tcp");

	if (bind(listener, &address.any, size) || listen(listener, SOMAXCONN))
		fail("listen");
	puts("ready");
	while (ready_until(listener, POLLIN, end)) {
		int connection = accept(listener, NULL, NULL);

		while (read(connection, bytes, sizeof(bytes)) > 0)
			;
		(void)!write(connection, bytes, 1);
		close(connection);
	}
	return 0;
}

int time_stream(const struct words *words)
{
	static uint8_t bytes[LARGEST];
	int socket = connect_to(words, "tcp");
	long start = microseconds(), end = start + 1000L * number(words->rest[3]), sent = 0;

	while (microseconds() < end) {
		ssize_t count = write(socket, bytes, sizeof(bytes));

		if (count < 0)
			fail("write");
		sent += count;
	}
	shutdown(socket, SHUT_WR);
	if (read(socket, bytes, 1) != 1)
		fail("read");
	printf("stream bytes=%ld microseconds=%ld\n", sent, microseconds() - start);
	return 0;
}

int time_connections(const struct words *words)
{
	long start = microseconds(), end = start + 1000L * number(words->rest[3]), count = 0;

	for (; microseconds() < end; count++)
		close(connect_to(words, "tcp"));
	printf("connections count=%ld microseconds=%ld\n", count, microseconds() - start);
	return 0;
}
