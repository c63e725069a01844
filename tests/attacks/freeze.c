// Freezes or thaws a file system: freeze freeze|thaw DIRECTORY.
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int count, char **words)
{
	int directory = count == 3 ? open(words[2], O_RDONLY | O_DIRECTORY) : -1;

	if (directory < 0 || ioctl(directory, strcmp(words[1], "thaw") ? FIFREEZE : FITHAW, 0)) {
		perror("freeze");
		return 1;
	}
	return 0;
}
