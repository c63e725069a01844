/* Sends from a network namespace without being in it: a socket that was made there keeps it. */
#define _GNU_SOURCE
#include "talk.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DATAGRAM 100
#define PAUSE 20000 /* microseconds between datagrams */

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr head;
};

static void pass(int to, int file)
{
	char byte = 0;
	struct iovec part = {&byte, 1};
	union control control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	if (sendmsg(to, &message, 0) < 0)
		fail("pass");
}

static int take(int from)
{
	char byte;
	struct iovec part = {&byte, 1};
	union control control;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int file;

	if (recvmsg(from, &message, 0) < 0)
		fail("take");
	memcpy(&file, CMSG_DATA(&control.head), sizeof(file));
	return file;
}

/* Makes the socket, passes it on, and ends before anybody else runs on this processor. */
static void make(const struct words *words, int to)
{
	struct sched_param first = {.sched_priority = 50};
	int file;

	puts("ready");
	usleep(words->wait * 1000);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("SCHED_FIFO");
	file = socket(AF_INET, SOCK_DGRAM, 0);
	if (file < 0)
		fail("socket");
	pass(to, file);
	_exit(0);
}

/* ADDRESS PORT COUNT: a process in a namespace of its own sends by a socket from this one. */
int away(const struct words *words)
{
	int sent = 0, refused = 0, count = number(words->rest[2]), pair[2], file;
	uint8_t bytes[DATAGRAM];
	union address to;
	socklen_t size = address_of(&to, AF_INET, words->rest[0], number(words->rest[1]));

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("socketpair");
	if (fork())
		make(words, pair[0]);
	if (unshare(CLONE_NEWNET))
		fail("unshare");
	file = take(pair[1]);
	fill(bytes, sizeof(bytes), 0, sizeof(bytes));
	for (int i = 0; i < count; i++) {
		if (sendto(file, bytes, sizeof(bytes), 0, &to.any, size) == sizeof(bytes))
			sent++;
		else if (errno == EAGAIN)
			refused++;
		else
			fail("send");
		usleep(PAUSE);
	}
	printf("away sent=%d refused=%d\n", sent, refused);
	return 0;
}
