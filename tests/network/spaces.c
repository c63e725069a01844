/* Makes network namespaces, and keeps them by an internet socket in each. */
#define _GNU_SOURCE
#include "talk.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* So many refusals in a row mean that there is no room left. */
#define REFUSALS 5

/* Whether the task gets a socket. The second time, it is not because of many in one second. */
static int gets_socket(void)
{
	if (socket(AF_INET, SOCK_DGRAM, 0) >= 0)
		return 1;
	usleep(1100000);
	return socket(AF_INET, SOCK_DGRAM, 0) >= 0;
}

/* COUNT PAUSE [user]: in a user namespace of its own, pausing so many milliseconds after each. */
int spaces(const struct words *words)
{
	struct rlimit files = {100000, 100000};
	int count = number(words->rest[0]), pause = number(words->rest[1]);
	int made = 0, refused = 0;

	setrlimit(RLIMIT_NOFILE, &files);
	if (words->count > 2 && unshare(CLONE_NEWUSER))
		fail("unshare");
	while (made < count && refused < REFUSALS) {
		if (unshare(CLONE_NEWNET))
			fail("unshare");
		if (gets_socket()) {
			made++;
			refused = 0;
		} else {
			refused++;
		}
		usleep(pause * 1000);
	}
	printf("made=%d refused=%d\n", made, refused);
	fflush(stdout);
	sleep(words->wait / 1000);
	return 0;
}
