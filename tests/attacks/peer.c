/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* peer COMMAND...: runs it in a mount namespace whose mounts are peers of the shared ones. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2 || unshare(CLONE_NEWNS)) {
		perror("peer");
		return 2;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 2;
}
