/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slip COUNT GO TOLD: when the file GO exists, creates this many processes: a third children, a
 * third orphans, a third orphans in sessions of their own. When the file TOLD exists, each tries to
 * read the secret, and adds a byte to TOLD.read or TOLD.denied.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void await(const char *path)
{
	while (access(path, F_OK))
		usleep(50000);
}

static void add(const char *path, const char *end)
{
	char name[256];
	int file;

	snprintf(name, sizeof name, "%s.%s", path, end);
	file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (file < 0 || write(file, ".", 1) != 1)
		_exit(1);
}

static void child(const char *told, const int *starts)
{
	char byte;

	close(starts[1]);
	if (read(starts[0], &byte, 1))
		_exit(1);
	int file = open("/srv/secret", O_RDONLY);

	add(told, file >= 0 && read(file, &byte, 1) == 1 ? "read" : "denied");
	pause();
	_exit(0);
}

int main(int count, char **words)
{
	int starts[2];

	if (count != 4 || pipe(starts))
		return 2;
	await(words[2]);
	for (int number = 0; number < atoi(words[1]); number++) {
		pid_t process = fork();

		if (process < 0)
			return 1;
		if (process) {
			if (number % 3)
				waitpid(process, 0, 0);
			continue;
		}
		if (number % 3 == 2)
			setsid();
		if (number % 3 && fork())
			_exit(0);
		child(words[3], starts);
	}
	await(words[3]);
	close(starts[1]);
	pause();
	return 0;
}
