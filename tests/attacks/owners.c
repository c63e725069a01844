/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Owners of files, to which the files send signals (F_SETOWN).
 *
 *   owners open COUNT COMMAND...   pairs of sockets from descriptor 100 on, for a command
 *   owners set COUNT [END]         owns the given ones, has each send a signal, and
 *                                  prints how many arrived; stays until the file END exists
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST 100

static volatile sig_atomic_t came;

static void count(int signal)
{
	(void)signal;
	came++;
}

static int open_pairs(int pairs)
{
	struct rlimit limit;
	int ends[2];

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -1;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return -1;
	for (int i = 0; i < pairs; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			return -1;
		if (dup2(ends[0], FIRST + 2 * i) < 0 || dup2(ends[1], FIRST + 2 * i + 1) < 0)
			return -1;
		close(ends[0]);
		close(ends[1]);
	}
	return 0;
}

static int own(int file)
{
	return fcntl(file, F_SETOWN, getpid()) || fcntl(file, F_SETSIG, SIGUSR1) ||
	       fcntl(file, F_SETFL, O_ASYNC | O_NONBLOCK);
}

int main(int argc, char **argv)
{
	int pairs = argc > 2 ? atoi(argv[2]) : 0;

	if (argc > 3 && !strcmp(argv[1], "open")) {
		if (open_pairs(pairs)) {
			perror("open");
			return 2;
		}
		execvp(argv[3], argv + 3);
		perror(argv[3]);
		return 2;
	}
	if (argc < 3 || strcmp(argv[1], "set"))
		return 2;
	signal(SIGUSR1, count);
	for (int i = 0; i < pairs; i++) {
		if (own(FIRST + 2 * i)) {
			perror("own");
			return 2;
		}
	}
	for (int i = 0; i < pairs; i++) {
		if (write(FIRST + 2 * i + 1, "x", 1) != 1) {
			perror("write");
			return 2;
		}
	}
	printf("%d of %d signals\n", (int)came, pairs);
	fflush(stdout);
	while (argc > 3 && access(argv[3], F_OK))
		usleep(100000);
	return 0;
}
