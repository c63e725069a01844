/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* immutable FILE on|off: makes a file and its attributes unchangeable, or changeable again. */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
	int flags = argc == 3 && !strcmp(argv[2], "on") ? FS_IMMUTABLE_FL : 0;
	int file = argc == 3 ? open(argv[1], O_RDONLY) : -1;

	if (file < 0 || ioctl(file, FS_IOC_SETFLAGS, &flags)) {
		perror("immutable");
		return 1;
	}
	return 0;
}
