// Fills the room for extended attributes of a file that it has just created, so that no label fits:
// eafull FILE BLOCK-SIZE TEXT.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

int main(int count, char **words)
{
	static char value[65536];
	int file = count == 4 ? open(words[1], O_CREAT | O_EXCL | O_WRONLY, 0644) : -1;

	if (file < 0) {
		perror("open");
		return 1;
	}
	memset(value, 'x', sizeof value);
	// The inode's own room is left to the second.
	if (fsetxattr(file, "user.a", value, atoi(words[2]) - 56, 0))
		perror("user.a");
	if (fsetxattr(file, "user.b", value, 68, 0))
		perror("user.b");
	return write(file, words[3], strlen(words[3])) < 0;
}
