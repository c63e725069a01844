/* exchange ONE OTHER: exchanges two files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>

int main(int count, char **words)
{
	if (count == 3 && !renameat2(AT_FDCWD, words[1], AT_FDCWD, words[2], RENAME_EXCHANGE))
		return 0;
	perror("exchange");
	return 1;
}
