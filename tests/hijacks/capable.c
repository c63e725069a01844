// SPDX-License-Identifier: MIT
/* A program with a file capability, which it hands to its helper, with a variable that the user may
 * set. */
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[2];

	if (argc < 2 || (argc > 2 && putenv(argv[2])) || syscall(SYS_capget, &head, sets))
		return 2;
	sets[0].inheritable |= sets[0].permitted;
	if (syscall(SYS_capset, &head, sets) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0))
		return 2;
	execl("/h/helper", "helper", argv[1], (char *)0);
	return 127;
}
