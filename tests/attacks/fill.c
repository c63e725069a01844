/* Fills what is kept of files with several names, or of files with labels of their own.
 *
 *   fill links COUNT FROM TO   makes a file in FROM, links it to TO, and so on; prints how many
 *   fill names COUNT IN        a file with as many names in one directory
 *   fill made COUNT IN         directories with a file "made" in each
 *   fill messages COUNT        System V messages of no bytes
 *   fill owners COUNT          pipes with an owner
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 30000 /* less than any file system allows a file */

static int make(const char *path)
{
	int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	return file < 0 ? -1 : close(file);
}

static int link_one(char **to, long number)
{
	char from[256], name[256];

	snprintf(from, sizeof from, "%s/f%ld", to[0], number);
	snprintf(name, sizeof name, "%s/l%ld", to[1], number);
	return make(from) ? -1 : link(from, name);
}

static int name_one(char **to, long number)
{
	char from[256], name[256];

	snprintf(from, sizeof from, "%s/n%ld", to[0], number - number % NAMES);
	snprintf(name, sizeof name, "%s/n%ld", to[0], number);
	return number % NAMES ? link(from, name) : make(from);
}

static int make_one(char **to, long number)
{
	char name[256];

	snprintf(name, sizeof name, "%s/d%ld", to[0], number);
	if (mkdir(name, 0755))
		return -1;
	strcat(name, "/made");
	return make(name);
}

static int send_one(char **to, long number)
{
	static int queue;
	struct msgbuf {
		long type;
	} message = {1};

	(void)to;
	if (number % 1000 == 0)
		queue = msgget(IPC_PRIVATE, 0600);
	return queue < 0 ? -1 : msgsnd(queue, &message, 0, IPC_NOWAIT);
}

static int own_one(char **to, long number)
{
	int ends[2];

	(void)to;
	(void)number;
	return pipe(ends) || fcntl(ends[0], F_SETOWN, getpid()) ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*one)(char **, long);
	} all[] = {{"links", link_one}, {"names", name_one}, {"made", make_one}, {"messages", send_one}, {"owners", own_one}};
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned i = 0; argc > 2 && i < sizeof all / sizeof *all; i++) {
		long wanted = atol(argv[2]), got = 0;

		if (strcmp(argv[1], all[i].name))
			continue;
		while (got < wanted && !all[i].one(argv + 3, got))
			got++;
		printf("%ld %s: %s\n", got, argv[1], got < wanted ? strerror(errno) : "as many as asked for");
		return 0;
	}
	return 2;
}
