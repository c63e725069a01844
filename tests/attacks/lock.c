/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock FILE: takes the lock of a file that is open for reading. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

int main(int argc, char **argv)
{
	int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;

	if (file < 0 || flock(file, LOCK_SH | LOCK_NB)) {
		perror("lock");
		return 1;
	}
	return 0;
}
