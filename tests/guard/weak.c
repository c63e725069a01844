// SPDX-License-Identifier: MIT
/*
 * A deliberately weak setuid program: it says where its buffer is, starts a helper, and reads more
 * than the buffer has room for. It has no call that starts a shell.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) long greet(void)
{
	char name[64];

	printf("%p\n", (void *)name);
	fflush(stdout);
	return read(0, name, 1024);
}

int main(void)
{
	if (!fork()) {
		execl("/bin/helper", "helper", (char *)0);
		_exit(127);
	}
	wait(0);
	return greet() > 0 ? 0 : 1;
}
