/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* end WHAT: `ftrace`: switch it off; `mounts`: unmount /sys with all that is in it; `secret`: read
 * /etc/shadow. Exits with 0, or the error's number: some domains may write to no terminal. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int file, done = -1;

	if (!strcmp(what, "ftrace")) {
		file = open("/proc/sys/kernel/ftrace_enabled", O_WRONLY);
		done = file < 0 || write(file, "0", 1) != 1 ? -1 : 0;
	} else if (!strcmp(what, "mounts")) {
		done = umount2("/sys", MNT_DETACH);
	} else if (!strcmp(what, "secret")) {
		done = open("/etc/shadow", O_RDONLY);
	}
	return done < 0 ? errno : 0;
}
