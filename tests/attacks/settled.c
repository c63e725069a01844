/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * settled ROOT: waits until no label that was noted so far in the file system with this root can be
 * lost in a crash: until its checkpoint is later than this program's start. Fails after two
 * minutes.
 */
#include <stdio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define ATTEMPTS 1200
#define PAUSE 100000

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

/* The time of the checkpoint, 0 without one. */
static long long checkpoint(const char *root)
{
	char text[64] = "";
	long long from = 0;

	if (getxattr(root, "security.bpf.tollgate.checkpoint", text, sizeof(text) - 1) > 0)
		sscanf(text, "%lld", &from);
	return from;
}

int main(int argc, char **argv)
{
	const long long start = now();

	for (int i = 0; argc == 2 && i < ATTEMPTS; i++) {
		if (checkpoint(argv[1]) > start)
			return 0;
		usleep(PAUSE);
	}
	fprintf(stderr, "settled: no checkpoint of %s later than %lld\n", argv[1], start);
	return 1;
}
