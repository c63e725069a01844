// SPDX-License-Identifier: MIT
/* A deliberately weak setuid program: it reads more than its buffer has room for, and calls nothing
 * else. */
#include <stdio.h>
#include <unistd.h>

static __attribute__((noinline)) long greet(void)
{
	char name[128];

	printf("%p %p\n", (void *)name, (void *)stdout);
	fflush(stdout);
	return read(0, name, 1024);
}

int main(void)
{
	return greet() > 0 ? 0 : 1;
}
