/* SPDX-License-Identifier: MIT */
/* Prints the context of this process, and whether the policy in force lets it read shadow files. */
#include <errno.h>
#include <stdio.h>
#include <tollgate.h>

int main(void)
{
	char *context;

	if (tg_getcon(&context)) {
		fprintf(stderr, "context: %s\n", tg_error());
		return 2;
	}
	int denied = tg_check_access(context, "system_u:object_r:shadow_t:s0", "file", "read");

	if (denied && errno != EACCES) {
		fprintf(stderr, "context: %s\n", tg_error());
		return 2;
	}
	printf("%s\nfile read of shadow_t: %s\n", context, denied ? "denied" : "allowed");
	tg_freecon(context);
	return 0;
}
