// Fills the room for extended attributes of a file that it has just created, so that no label fits:
// eafull FILE BLOCK-SIZE TEXT.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

// Of a few tries, one is faster than the thread that writes the label.
#define MAX_TRIES 100

static char value[65536];

// Returns a descriptor, -1, or -2 if the label was there first.
static int make_full(const char *name, int block)
{
	int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (file < 0) {
		perror("open");
		return -1;
	}
	// The inode's own room is left to the second.
	if (!fsetxattr(file, "user.a", value, block - 56, 0) &&
	    !fsetxattr(file, "user.b", value, 68, 0))
		return file;
	close(file);
	unlink(name);
	return -2;
}

int main(int count, char **words)
{
	int file = -2;

	if (count != 4)
		return 1;
	memset(value, 'x', sizeof value);
	for (int try = 0; file == -2 && try < MAX_TRIES; try++)
		file = make_full(words[1], atoi(words[2]));
	if (file < 0) {
		perror("user.b");
		return 1;
	}
	return write(file, words[3], strlen(words[3])) < 0;
}
