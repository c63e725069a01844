/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hold lock FILE: locks a file that it has opened for reading, and keeps the lock.
 * hold connect SOCKET COUNT: connects this often, and keeps the connections.
 * hold storm SOCKET SECONDS: connects all the time; of the thousand connections that it keeps,
 * every other one has begun a request.
 * hold pairs FOLDER COUNT CONTEXT: creates this many files, each with the attribute of another
 * pair of categories.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int lock(const char *path)
{
	int file = open(path, O_RDONLY);

	if (file < 0 || flock(file, LOCK_EX)) {
		perror(path);
		return 1;
	}
	for (;;)
		pause();
}

static int occupy(const char *path, int count)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	for (int number = 0; number < count; number++) {
		int file = socket(AF_UNIX, SOCK_STREAM, 0);

		if (file < 0 || connect(file, (void *)&address, sizeof address)) {
			perror(path);
			return 1;
		}
	}
	for (;;)
		pause();
}

static int storm(const char *path, int seconds)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static int files[1000];
	const long kept = sizeof files / sizeof *files;
	time_t end = time(NULL) + seconds;
	long number = 0;

	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	for (; time(NULL) < end; number++) {
		int *file = &files[number % kept];

		if (number >= kept)
			close(*file);
		*file = socket(AF_UNIX, SOCK_STREAM, 0);
		if (*file < 0 || connect(*file, (void *)&address, sizeof address)) {
			perror(path);
			return 1;
		}
		if (number & 1)
			send(*file, "hel", 3, MSG_NOSIGNAL);
	}
	printf("%ld connections\n", number);
	return 0;
}

static int pairs(const char *folder, int count, const char *context)
{
	char path[256], value[256];
	int number = 0;

	for (int first = 0; number < count; first++)
		for (int second = first + 1; second < 1024 && number < count; second++, number++) {
			snprintf(path, sizeof path, "%s/%d", folder, number);
			snprintf(value, sizeof value, "%s:c%d,c%d", context, first, second);
			int file = open(path, O_WRONLY | O_CREAT, 0644);

			if (file < 0 ||
			    setxattr(path, "security.bpf.tollgate", value, strlen(value), 0)) {
				perror(path);
				return 1;
			}
			close(file);
		}
	return 0;
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "lock"))
		return lock(words[2]);
	if (count == 4 && !strcmp(words[1], "connect"))
		return occupy(words[2], atoi(words[3]));
	if (count == 4 && !strcmp(words[1], "storm"))
		return storm(words[2], atoi(words[3]));
	if (count == 5 && !strcmp(words[1], "pairs"))
		return pairs(words[2], atoi(words[3]), words[4]);
	return 2;
}
