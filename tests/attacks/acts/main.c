/* acts run DOMAIN [NAME...]: does each act as a process of the domain; prints a line per result. */
#include "acts.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ACTS "/srv/tool/acts"
#define SECONDS 20 /* an act that has not ended by then hangs */

/* Exit statuses of an act. */
#define STATUS_MISSED 62
#define STATUS_REACHED 63
#define STATUS_FAILED 64 /* and the error's number */

static const struct act *const themes[] = {file_acts,	 ring_acts,    descriptor_acts,
					   mount_acts,	 process_acts, memory_acts,
					   network_acts, object_acts,  helper_acts};
#define THEMES (sizeof themes / sizeof *themes)

static int status_of(int result)
{
	return result < 0 ? STATUS_FAILED - result : result ? STATUS_MISSED : STATUS_REACHED;
}

static void tell(const char *domain, const char *name, int status)
{
	const char *error =
		WIFEXITED(status) ? strerrorname_np(WEXITSTATUS(status) - STATUS_FAILED) : NULL;

	printf("%s %s ", domain, name);
	if (WIFSIGNALED(status))
		printf("%s\n", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == STATUS_REACHED)
		printf("granted\n");
	else if (WEXITSTATUS(status) == STATUS_MISSED)
		printf("missed\n");
	else if (WEXITSTATUS(status) > STATUS_FAILED && error)
		printf("%s\n", error);
	else
		printf("not started: %d\n", WEXITSTATUS(status));
}

static const struct act *find(const char *name)
{
	for (size_t theme = 0; theme < THEMES; theme++)
		for (const struct act *act = themes[theme]; act->name; act++)
			if (!strcmp(act->name, name))
				return act;
	must(0, name);
	return NULL;
}

/* Restores everything, because an act may have changed it. */
static void arrange(const char *domain, const char *name)
{
	char place[128];

	must(!unshare(CLONE_NEWNS), "unshare");
	must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount");
	unlink(SECRET);
	unlink(NOTICE);
	write_file(SECRET, TEXT_OF_SECRET);
	write_file(NOTICE, TEXT_OF_NOTICE);
	snprintf(place, sizeof place, "/srv/open/%s-%s", domain, name);
	must(!mkdir(place, 0777), place);
	must(!chdir(place), place);
}

/* One act from its preparation to its proof, in a process group that ends with it. */
static int play(const struct act *act, const char *domain)
{
	int status;
	pid_t attack;

	setpgid(0, 0);
	arrange(domain, act->name);
	if (act->prepare)
		act->prepare();
	if (act->keeper)
		start_keeper(ACTS, act->name);
	attack = fork();
	if (!attack) {
		alarm(SECONDS);
		enter(domain, ACTS, "attack", act->name);
	}
	waitpid(attack, &status, 0);
	if (act->proof && WIFEXITED(status) && WEXITSTATUS(status) >= STATUS_MISSED) {
		int result = act->proof();

		if (result == REACHED || WEXITSTATUS(status) == STATUS_REACHED)
			status = status_of(result) << 8;
	}
	tell(domain, act->name, status);
	fflush(stdout);
	kill(0, SIGKILL);
	return 0;
}

static void run(const char *domain, const struct act *act)
{
	pid_t player = fork();

	if (!player)
		_exit(play(act, domain));
	waitpid(player, NULL, 0);
}

int main(int count, char **words)
{
	must(count > 2, "acts run|attack|keep ...");
	if (!strcmp(words[1], "attack"))
		return status_of(find(words[2])->attack());
	if (!strcmp(words[1], "keep"))
		find(words[2])->keeper();
	else if (count > 3)
		for (int word = 3; word < count; word++)
			run(words[2], find(words[word]));
	else
		for (size_t theme = 0; theme < THEMES; theme++)
			for (const struct act *act = themes[theme]; act->name; act++)
				run(words[2], act);
	return 0;
}
