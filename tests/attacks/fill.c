/* Fills the maps for files with several names, and for other objects with labels of their own:
 * tries COUNT times, and prints how often it succeeded.
 *
 *   fill links COUNT FROM TO   files in FROM, each linked to TO
 *   fill names COUNT IN        files with many names in one directory
 *   fill made COUNT IN         directories with a file "made" in each
 *   fill queues COUNT          System V message queues
 *   fill opens COUNT PATH      a file is opened
 *   fill uids COUNT FIRST      queues, each as another user, from the uid FIRST on
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 30000 /* fewer than any file system allows per file */

static int make(const char *path)
{
	int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	return file < 0 ? -1 : close(file);
}

/* A file that could not be linked is tried again. */
static int link_one(char **to, long number)
{
	static long made = -1;
	char from[256], name[256];

	snprintf(name, sizeof name, "%s/l%ld", to[1], number);
	if (made < 0) {
		snprintf(from, sizeof from, "%s/f%ld", to[0], number);
		if (make(from))
			return -1;
		made = number;
	}
	snprintf(from, sizeof from, "%s/f%ld", to[0], made);
	if (link(from, name))
		return -1;
	made = -1;
	return 0;
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

static int queue_one(char **to, long number)
{
	(void)to;
	(void)number;
	return msgget(IPC_PRIVATE, 0600) < 0;
}

static int queue_as_one(char **to, long number)
{
	return setresuid(atoi(to[0]) + number, 0, 0) ? -1 : queue_one(to, number);
}

static int open_one(char **to, long number)
{
	int file = open(to[0], O_RDONLY);

	(void)number;
	return file < 0 ? -1 : close(file);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*one)(char **, long);
	} all[] = {{"links", link_one},	  {"names", name_one}, {"made", make_one},
		   {"queues", queue_one}, {"opens", open_one}, {"uids", queue_as_one}};

	for (unsigned i = 0; argc > 2 && i < sizeof all / sizeof *all; i++) {
		long times = atol(argv[2]), done = 0;
		int why = 0;

		if (strcmp(argv[1], all[i].name))
			continue;
		for (long number = 0; number < times; number++) {
			if (all[i].one(argv + 3, number))
				why = errno;
			else
				done++;
		}
		printf("%ld %s: %s\n", done, argv[1], why ? strerror(why) : "all");
		return 0;
	}
	return 2;
}
