// Gives a file another generation, by which its label is kept: renumber swap|set FILE. Swapping
// twice brings the content back.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define EXT4_IOC_SETVERSION _IOW('f', 4, long)
#define EXT4_IOC_SWAP_BOOT _IO('f', 17)
#define NEITHER 3 // neither read nor write: only ioctl is asked

static int renumber(int file, int swaps)
{
	int generation = 4711;

	return swaps ? ioctl(file, EXT4_IOC_SWAP_BOOT)
		     : ioctl(file, EXT4_IOC_SETVERSION, &generation);
}

int main(int count, char **words)
{
	int swaps = count == 3 && !strcmp(words[1], "swap");
	int file = count == 3 ? open(words[2], swaps ? O_WRONLY | O_APPEND : NEITHER) : -1;

	if (file < 0) {
		perror("open");
		return 2;
	}
	for (int time = 0; time <= swaps; time++) {
		int result = renumber(file, swaps);

		printf("%s\n", result ? strerror(errno) : "done");
		if (result)
			return 1;
	}
	return 0;
}
