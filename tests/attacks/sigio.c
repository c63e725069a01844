/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sigio PROCESS: kills it by a file that it owns: with F_SETSIG a file sends its owner any signal.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int ends[2];

	if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 2;
	if (fcntl(ends[0], F_SETOWN, atoi(argv[1])) || fcntl(ends[0], F_SETSIG, SIGKILL) ||
	    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK)) {
		perror("fcntl");
		return 1;
	}
	return write(ends[1], "x", 1) == 1 ? 0 : 1;
}
