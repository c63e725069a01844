/*
 * fuzz run DOMAIN SEED COUNT	runs sequences of random calls, each a process of the domain; prints
 * a line per sequence. fuzz count	prints how many entries Tollgate's maps have.
 *
 * A sequence depends only on its number and on this program, so that it can be compared
 * with itself under another enforcer. A line: the sequence's number, then CALL=ok or CALL=ERROR for
 * each call.
 */
#include "../acts/acts.h"
#include "fuzz.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#define FUZZ "/srv/tool/fuzz"
#define CALLS 40	    /* of a sequence */
#define MICROSECONDS 300000 /* a call that waits longer is interrupted */
#define SECONDS 30	    /* a sequence that has not ended by then is killed */

static void interrupted(int signal)
{
	(void)signal;
}

static void sequence(uint64_t seed)
{
	struct sigaction action = {.sa_handler = interrupted};
	struct itimerval limit = {.it_value.tv_usec = MICROSECONDS}, none = {};

	prepare_values(seed);
	sigaction(SIGALRM, &action, NULL);
	for (int count = 0; count < CALLS; count++) {
		const struct call *call = &__start_calls[one_of(__stop_calls - __start_calls)];
		char line[64];
		long result;
		int length;

		setitimer(ITIMER_REAL, &limit, NULL);
		errno = 0;
		result = call->make();
		length = snprintf(line, sizeof line, " %s=%s", call->name,
				  result < 0 ? strerrorname_np(errno) : "ok");
		setitimer(ITIMER_REAL, &none, NULL);
		/* A signal that a call has sent comes before the next one. */
		if (write(RESULTS, line, length) != length)
			_exit(1);
	}
}

/* Restores everything: a sequence must not see the effects of the one before. */
static void arrange(void)
{
	must(!unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET), "unshare");
	must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount");
	must(!system("rm -rf /srv/open/fuzz; rm -rf /srv/vault/* /srv/notices/*; mkdir "
		     "/srv/open/fuzz"),
	     "a place");
	write_file(SECRET, TEXT_OF_SECRET);
	write_file(NOTICE, TEXT_OF_NOTICE);
	/* Its own program is named by /proc/self/exe. */
	must(!chmod(NOTICE, 0777) && !chmod(SECRET, 0777) && !chmod(FUZZ, 0755), "chmod");
	must(!chdir("/srv/open/fuzz"), "/srv/open/fuzz");
}

static int play(const char *domain, const char *number)
{
	int results[2], status;
	char text[4096];
	ssize_t length;
	pid_t player;

	setpgid(0, 0);
	arrange();
	must(!pipe(results), "pipe");
	player = fork();
	if (!player) {
		dup2(results[1], RESULTS);
		close(results[0]);
		close(results[1]);
		enter(domain, FUZZ, "sequence", number);
	}
	close(results[1]);
	printf("%s", number);
	while ((length = read(results[0], text, sizeof text)) > 0)
		fwrite(text, 1, length, stdout);
	waitpid(player, &status, 0);
	printf(WIFSIGNALED(status) ? " killed\n" : "\n");
	fflush(stdout);
	kill(0, SIGKILL);
	return 0;
}

static void run(const char *domain, uint64_t seed)
{
	char number[24];
	pid_t player = fork();

	snprintf(number, sizeof number, "%lu", seed);
	if (!player) {
		alarm(SECONDS);
		_exit(play(domain, number));
	}
	waitpid(player, NULL, 0);
}

int main(int count, char **words)
{
	uint64_t first;

	must(count > 1, "fuzz run DOMAIN SEED COUNT");
	if (!strcmp(words[1], "count")) {
		count_entries();
		return 0;
	}
	if (!strcmp(words[1], "sequence")) {
		sequence(strtoul(words[2], NULL, 10));
		return 0;
	}
	if (!strcmp(words[1], "keep")) {
		keeping();
		for (;;)
			pause();
	}
	write_file(SECRET, TEXT_OF_SECRET);
	/* A process of another domain, which sequences may name. */
	start_keeper(FUZZ, "");
	first = strtoul(words[3], NULL, 10);
	for (uint64_t seed = first; seed < first + strtoul(words[4], NULL, 10); seed++)
		run(words[2], seed);
	kill(keeper(), SIGKILL);
	must(!system("rm -rf /srv/open/fuzz"), "rm");
	return 0;
}
