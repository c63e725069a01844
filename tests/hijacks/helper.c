// SPDX-License-Identifier: MIT
/* The helper of the careless programs. */
#include <stdio.h>

int main(int argc, char **argv)
{
	return argc > 1 && printf("hello %s\n", argv[1]) > 0 ? 0 : 1;
}
