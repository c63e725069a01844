// SPDX-License-Identifier: MIT
/* A deliberately weak root daemon: each message to its socket begins with the letter of a request.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define USER 1000

struct entry {
	long number;
	void (*greet)(const char *name);
};

static void greet(const char *name)
{
	(void)name;
}

static long values[16];
static void (*finish)(const char *request) = greet;
static char *last;

/* A heap overflow: the name's length is the sender's. */
static void name(const char *said, size_t length)
{
	char *name = malloc(32);
	struct entry *entry = malloc(sizeof *entry);

	entry->greet = greet;
	memcpy(name, said, length);
	entry->greet(name);
}

/* The folder is the user's: the name may be a link. */
static void note(const char *text)
{
	int file = open("/tmp/log/daemon.log", O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (file >= 0 && write(file, text, strlen(text)) > 0)
		close(file);
}

/* Looks at a file, and opens it later. */
static void keep(const char *path)
{
	struct stat stat;

	if (lstat(path, &stat) || !S_ISREG(stat.st_mode) || stat.st_uid != USER)
		return;
	usleep(300000);
	int file = open(path, O_WRONLY | O_CREAT, 0644);

	if (file >= 0 && write(file, "kept\n", 5) > 0)
		close(file);
}

static void serve(int client)
{
	char line[512], reply[512];
	long length, index, value;

	dprintf(client, "%p %p %p %p\n", (void *)line, (void *)stdout, (void *)values,
		(void *)&finish);
	while ((length = read(client, line, sizeof line - 1)) > 0) {
		line[length] = 0;
		strcpy(reply, "done\n");
		last = strdup(line);
		if (line[0] == 'n')
			name(line + 2, length - 2);
		else if (line[0] == 'l')
			note(line + 2);
		else if (line[0] == 'k')
			keep(line + 2);
		else if (line[0] == 'p')
			snprintf(reply, sizeof reply, line + 2);
		else if (sscanf(line, "s %ld %ld", &index, &value) == 2 && index < 16)
			values[index] = value;
		finish(line + 2);
		if (write(client, reply, strlen(reply)) < 0)
			break;
	}
}

int main(void)
{
	struct sockaddr_un address = {AF_UNIX, "/run/daemon"};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), client;

	signal(SIGCHLD, SIG_IGN);
	unlink(address.sun_path);
	if (bind(listener, (void *)&address, sizeof address) || chmod(address.sun_path, 0666) ||
	    listen(listener, 8))
		return 1;
	while ((client = accept(listener, 0, 0)) >= 0) {
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			serve(client);
			return 0;
		}
		close(client);
	}
	return 1;
}
