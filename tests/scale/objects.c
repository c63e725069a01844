/*
 * objects files|sockets|tasks NUMBER [FOLDER]   makes so many, and says what memory the kernel has
 * before, half-way and after objects run COMMAND...                        runs it, and says what
 * time and memory it took
 *
 * SID in the environment is the subject that makes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TG_PRCTL 0x54474154
#define EACH 1000 /* files of a folder */

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* KiB of a line of /proc/meminfo. */
static long memory(const char *name)
{
	char line[200];
	long found = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	if (!file)
		fail("/proc/meminfo");
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			found = atol(line + strlen(name) + 1);
	fclose(file);
	return found;
}

static void file(const char *folder, long number)
{
	char path[200];
	int file;

	snprintf(path, sizeof path, "%s/%ld", folder, number / EACH);
	if (number % EACH == 0 && mkdir(path, 0755))
		fail(path);
	snprintf(path, sizeof path, "%s/%ld/%ld", folder, number / EACH, number);
	file = open(path, O_CREAT | O_WRONLY, 0644);
	if (file < 0)
		fail(path);
	close(file);
}

static void task(void)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child)
		return;
	for (;;)
		pause();
}

static void make(const char *kind, long number, const char *folder)
{
	if (!strcmp(kind, "files"))
		file(folder, number);
	else if (!strcmp(kind, "tasks"))
		task();
	else if (socket(AF_INET, SOCK_DGRAM, 0) < 0)
		fail("socket");
}

static void say(const char *kind, long number)
{
	printf("%s %ld %ld\n", kind, number, memory("Slab") + memory("Percpu"));
	fflush(stdout);
}

static int run(char **command)
{
	struct timespec before, after;
	struct rusage used;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &before);
	pid_t child = fork();

	if (!child) {
		execv(command[0], command);
		_exit(127);
	}
	if (wait4(child, &status, 0, &used) < 0)
		fail("wait4");
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("run %ld us %ld KiB status %d\n",
	       (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000,
	       used.ru_maxrss, status);
	return !!status;
}

int main(int count, char **words)
{
	const char *sid = getenv("SID");
	struct rlimit many = {1000000, 1000000};

	if (count > 2 && !strcmp(words[1], "run"))
		return run(words + 2);
	if (count < 3)
		return 2;
	setrlimit(RLIMIT_NOFILE, &many);
	setrlimit(RLIMIT_NPROC, &many);
	/* With credentials of its own. The errno of success is EALREADY. */
	if (sid && (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) ||
		    prctl(TG_PRCTL, 1, atol(sid), 0, 0) != -1 || errno != EALREADY))
		fail("enter");
	setpgid(0, 0);
	long number = atol(words[2]);

	say(words[1], 0);
	for (long made = 0; made < number; made++) {
		make(words[1], made, count > 3 ? words[3] : "");
		if (made + 1 == number / 2 || made + 1 == number)
			say(words[1], made + 1);
	}
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(0) > 0)
		;
	return 0;
}
