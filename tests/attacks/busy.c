/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * busy IN TO END: works like a service until the file END exists, ten times per second: forks a
 * child that executes this program, which reads IN/read; makes a file in IN, names it in TO as
 * well, and removes both. Prints how often, and what failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long failures;

/* Counts an act, which gave a negative number if it failed. */
static int count(const char *what, int result, long *done)
{
	if (result < 0) {
		failures++;
		printf("%s: %s\n", what, strerror(errno));
	} else {
		++*done;
	}
	return result;
}

static void run(const char *program, const char *in, long *forks, long *execs)
{
	pid_t child = count("fork", fork(), forks);
	int ended = 1;

	if (!child) {
		execl(program, program, in, (char *)NULL);
		_exit(errno);
	}
	if (child > 0 && waitpid(child, &ended, 0) == child) {
		errno = WEXITSTATUS(ended);
		count("exec and open", ended ? -1 : 0, execs);
	}
}

static void name(const char *in, const char *to, long *links)
{
	char from[256], other[256];
	int file;

	snprintf(from, sizeof from, "%s/busy%d", in, getpid());
	snprintf(other, sizeof other, "%s/busy%d", to, getpid());
	file = open(from, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (file >= 0)
		close(file);
	count("link", file < 0 ? -1 : link(from, other), links);
	unlink(other);
	unlink(from);
}

int main(int argc, char **argv)
{
	long forks = 0, execs = 0, links = 0;
	char path[256];

	snprintf(path, sizeof path, "%s/read", argc > 1 ? argv[1] : "");
	if (argc == 2)
		return open(path, O_RDONLY) < 0 ? errno : 0;
	if (argc != 4)
		return 2;
	while (access(argv[3], F_OK)) {
		run(argv[0], argv[1], &forks, &execs);
		name(argv[1], argv[2], &links);
		usleep(100000);
	}
	printf("%ld forks, %ld execs, %ld links: %ld failed\n", forks, execs, links, failures);
	return failures != 0;
}
