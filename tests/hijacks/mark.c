// SPDX-License-Identifier: MIT
/* `mark NAME` leaves root's mark: a file that only root can make. It stands for the shell that a
 * hijacker wants. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[64];

	snprintf(path, sizeof path, "/marks/%s", argc > 1 ? argv[1] : "none");
	int file = open(path, O_WRONLY | O_CREAT, 0644);

	dprintf(file, "%d\n", (int)geteuid());
	return file < 0;
}
