/* Takes credentials until there are none, or as many as are asked for: each file that is open keeps the one that it was
 * opened with, and prctl makes a new one. Then it waits for the end of its input.
 *
 *   creds COUNT      prints how many it got
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 60000 /* of one process */

/* Takes up to `wanted`; tells how many, and why no more. */
static long take(long wanted, int *why)
{
	struct rlimit limit;
	long got = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (*why = 0; got < wanted; got++) {
		if (prctl(PR_SET_KEEPCAPS, (got & 1) ^ 1, 0, 0, 0) ||
		    open("/dev/null", O_RDONLY) < 0) {
			*why = errno;
			break;
		}
	}
	return got;
}

int main(int argc, char **argv)
{
	long wanted = argc > 1 ? atol(argv[1]) : 1000000, got = 0;
	int why = 0, told[2], stay[2];
	char end;

	if (pipe(told) || pipe(stay))
		return 2;
	while (got < wanted && !why) {
		long report[2] = {0, 0};
		pid_t child = fork();

		if (child < 0) {
			why = errno;
			break;
		}
		if (!child) {
			close(stay[1]);
			report[0] = take(wanted - got < FILES ? wanted - got : FILES, &why);
			report[1] = why;
			if (write(told[1], report, sizeof report) != sizeof report)
				_exit(2);
			while (read(stay[0], &end, 1) > 0)
				;
			_exit(0);
		}
		if (read(told[0], report, sizeof report) != sizeof report)
			return 2;
		got += report[0];
		why = report[1];
	}
	printf("%ld credentials: %s\n", got, why ? strerror(why) : "as many as asked for");
	fflush(stdout);
	while (read(0, &end, 1) > 0)
		;
	return 0;
}
