/* Takes credentials: each open file keeps the one with which it was opened, and prctl creates
 * a new one. Then it waits for the end of its input.
 *
 *   creds COUNT [BEGIN]   tries this often, once the file BEGIN exists; prints how many it got, and
 *                         whether it can fork then
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

struct taken {
	long tried, got;
	int why; /* the last was refused */
};

static struct taken take(long times)
{
	struct taken taken = {0, 0, 0};

	for (; taken.tried < times && taken.got < FILES; taken.tried++) {
		if (prctl(PR_SET_KEEPCAPS, (taken.tried & 1) ^ 1, 0, 0, 0) ||
		    open("/dev/null", O_RDONLY) < 0) {
			/* Freed ones become available after a while. */
			if (!taken.why)
				usleep(200000);
			taken.why = errno;
		} else {
			taken.got++;
		}
	}
	return taken;
}

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 0, got = 0;
	int told[2], stay[2], why = 0;
	struct rlimit limit;
	char end;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || pipe(told) || pipe(stay))
		return 2;
	while (argc > 2 && access(argv[2], F_OK))
		usleep(10000);
	while (left > 0) {
		struct taken taken;
		pid_t child = fork();

		if (child < 0) {
			why = errno;
			break;
		}
		if (!child) {
			close(stay[1]);
			taken = take(left);
			if (write(told[1], &taken, sizeof taken) != sizeof taken)
				_exit(2);
			while (read(stay[0], &end, 1) > 0)
				;
			_exit(0);
		}
		if (read(told[0], &taken, sizeof taken) != sizeof taken)
			return 2;
		left -= taken.tried;
		got += taken.got;
		why = taken.why ? taken.why : why;
	}
	pid_t child = fork();

	if (!child)
		_exit(0);
	printf("%ld credentials: %s, fork: %s\n", got, why ? strerror(why) : "all",
	       child < 0 ? strerror(errno) : "done");
	fflush(stdout);
	while (read(0, &end, 1) > 0)
		;
	return 0;
}
