/* A stream both ways at once: the same number of bytes in each direction, checked by their pattern.
 */
#define _GNU_SOURCE
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A pause that is longer than this is told as a stall, in milliseconds. */
#define STALL 1000

struct progress {
	size_t sent, received, wanted;
	long last, longest; /* the time of the last progress, and the longest pause */
	int stalls;
	bool good;
};

static void note(struct progress *of)
{
	long now = milliseconds(), pause = now - of->last;

	of->last = now;
	if (pause > of->longest)
		of->longest = pause;
	if (pause > STALL)
		of->stalls++;
}

static int receive_some(int socket, struct progress *of)
{
	static uint8_t bytes[LARGEST];
	ssize_t count = read(socket, bytes, sizeof(bytes));

	if (count <= 0)
		return count < 0 && errno == EAGAIN ? 0 : -1;
	of->good = of->good && matches(bytes, count, of->received, 0);
	of->received += count;
	note(of);
	return 0;
}

static int send_some(int socket, struct progress *of)
{
	static uint8_t bytes[LARGEST];
	size_t left = of->wanted - of->sent, size = left < sizeof(bytes) ? left : sizeof(bytes);
	ssize_t count;

	fill(bytes, size, of->sent, 0);
	count = write(socket, bytes, size);
	if (count < 0)
		return errno == EAGAIN ? 0 : -1;
	of->sent += count;
	note(of);
	return 0;
}

static void exchange(int socket, struct progress *of, long end)
{
	of->last = milliseconds();
	while (of->received < of->wanted || of->sent < of->wanted) {
		struct pollfd polled = {.fd = socket};
		long left = end - milliseconds();

		polled.events = (of->received < of->wanted ? POLLIN : 0) |
				(of->sent < of->wanted ? POLLOUT : 0);
		if (left <= 0 || poll(&polled, 1, left) <= 0)
			return;
		if (polled.revents & POLLIN && receive_some(socket, of))
			return;
		if (polled.revents & POLLOUT && send_some(socket, of))
			return;
		if (polled.revents & (POLLERR | POLLNVAL))
			return;
	}
}

/* Connects until a time: the kernel itself would try for two minutes. */
static void connect_until(int socket, const union address *to, socklen_t size, long end)
{
	int error = ETIMEDOUT;
	socklen_t width = sizeof(error);

	fcntl(socket, F_SETFL, O_NONBLOCK);
	if (connect(socket, &to->any, size) && errno != EINPROGRESS)
		fail("connect");
	if (ready_until(socket, POLLOUT, end))
		getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &width);
	if (error) {
		errno = error;
		fail("connect");
	}
}

static int join(const struct words *words, long end)
{
	union address address;
	socklen_t size = address_of(&address, words->family, words->to, number(words->rest[1]));
	int socket = open_socket(words, "tcp");

	if (words->to) {
		connect_until(socket, &address, size, end);
		return socket;
	}
	if (bind(socket, &address.any, size) || listen(socket, 1))
		fail("listen");
	puts("ready");
	if (!ready_until(socket, POLLIN, end)) {
		errno = ETIMEDOUT;
		fail("accept");
	}
	return accept(socket, NULL, NULL);
}

int bulk(const struct words *words)
{
	long start = milliseconds(), end = start + 1000L * number(words->rest[3]);
	struct progress of = {.wanted = number(words->rest[2]), .good = true};
	int socket = join(words, end);
	bool whole;

	fcntl(socket, F_SETFL, O_NONBLOCK);
	start = milliseconds();
	exchange(socket, &of, end);
	whole = of.good && of.received == of.wanted && of.sent == of.wanted;
	printf("bulk sent=%zu received=%zu payload=%s longest=%ld stalls=%d milliseconds=%ld\n",
	       of.sent, of.received, of.good ? "good" : "bad", of.longest, of.stalls,
	       milliseconds() - start);
	return !whole;
}
