// SPDX-License-Identifier: MIT
/* A careless setuid program: it starts its helper as root, with a variable that the user may set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char line[256];

	if (argc < 3 || setgid(0) || setuid(0) || (argc > 3 && putenv(argv[3])))
		return 2;
	if (!strcmp(argv[1], "searched"))
		execlp("helper", "helper", argv[2], (char *)0);
	if (!strcmp(argv[1], "fixed"))
		execl("/h/helper", "helper", argv[2], (char *)0);
	snprintf(line, sizeof line, "/h/helper %s", argv[2]);
	return system(line) ? 1 : 0;
}
