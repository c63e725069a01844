// Gives a file another generation, by which its label is stored: renumber WAY FILE. The file is
// opened for appending, which needs no more than `open append`; the output is the ioctl's
// result.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define FS_IOC_SETVERSION _IOW('v', 2, long)
#define FS_IOC32_SETVERSION _IOW('v', 2, int)
#define EXT4_IOC_SETVERSION _IOW('f', 4, long)
#define EXT4_IOC32_SETVERSION _IOW('f', 4, int)
#define EXT4_IOC_SWAP_BOOT _IO('f', 17)
#define IOCTL_OF_32_BITS 54

static const struct way {
	const char *name;
	unsigned command;
	int times;  // swapping twice brings the content back
	int narrow; // as a program of 32 bits calls it
} ways[] = {
	{"swap", EXT4_IOC_SWAP_BOOT, 2, 0},	  {"set", EXT4_IOC_SETVERSION, 1, 0},
	{"set32", EXT4_IOC32_SETVERSION, 1, 1},	  {"version", FS_IOC_SETVERSION, 1, 0},
	{"version32", FS_IOC32_SETVERSION, 1, 1},
};

static int narrow_ioctl(long file, long command, int *argument)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"((long)IOCTL_OF_32_BITS), "b"(file), "c"(command), "d"(argument)
		     : "memory", "r8", "r9", "r10", "r11");
	if (result >= 0)
		return 0;
	errno = -(int)result;
	return -1;
}

static int renumber(const struct way *way, int file)
{
	// A program of 32 bits has its memory below.
	int *generation = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (generation == MAP_FAILED)
		return -1;
	*generation = 4711;
	return way->narrow ? narrow_ioctl(file, way->command, generation)
			   : ioctl(file, (unsigned long)way->command, generation);
}

int main(int count, char **words)
{
	const struct way *way = ways, *end = ways + sizeof ways / sizeof *ways;

	while (count == 3 && way < end && strcmp(way->name, words[1]))
		way++;
	int file = count == 3 && way < end ? open(words[2], O_WRONLY | O_APPEND) : -1;

	if (file < 0) {
		perror("open");
		return 2;
	}
	for (int time = 0; time < way->times; time++) {
		int result = renumber(way, file);

		printf("%s: %s\n", way->name, result ? strerror(errno) : "done");
		if (result)
			return 1;
	}
	return 0;
}
