/* Programs that the kernel starts by itself: which ones, and in which domain. */
#include "acts.h"
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void no_note(void)
{
	unlink(NOTE);
}

static int noted(void)
{
	for (int tries = 0; tries < 20; tries++, usleep(50000))
		if (!access(NOTE, F_OK))
			return REACHED;
	return MISSED;
}

static int sets(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	return file < 0 ? -1 : write(file, text, strlen(text)) < 0;
}

static void restore_core_pattern(void)
{
	must(!sets("/proc/sys/kernel/core_pattern", "core"), "core_pattern");
}

static void no_note_no_pattern(void)
{
	no_note();
	restore_core_pattern();
}

/* Ends a child so that its memory is dumped. */
static void dump(void)
{
	struct rlimit much = {1 << 30, 1 << 30};
	pid_t child = fork();

	if (!child) {
		setrlimit(RLIMIT_CORE, &much);
		abort();
	}
	waitpid(child, NULL, 0);
}

static int dumped_to_helper(void)
{
	if (sets("/proc/sys/kernel/core_pattern", "|" PROBE))
		return failed();
	dump();
	return MISSED;
}

/* The dying process writes the dump, whatever its file name. */
static int dumped_into_vault(void)
{
	if (sets("/proc/sys/kernel/core_pattern", VAULT "/dump"))
		return failed();
	dump();
	return MISSED;
}

static int dump_in_vault(void)
{
	int result = access(VAULT "/dump", F_OK) ? MISSED : REACHED;

	unlink(VAULT "/dump");
	restore_core_pattern();
	return result;
}

static int noted_dump(void)
{
	restore_core_pattern();
	return noted();
}

/* For an unknown format, the kernel has a helper look for a module. */
static int loaded_for_format(void)
{
	if (sets("/proc/sys/kernel/modprobe", PROBE))
		return failed();
	write_file("unknown", "\xff\xfe\xfd\xfc");
	must(!chmod("unknown", 0777), "unknown");
	if (!fork()) {
		execl("./unknown", "unknown", NULL);
		_exit(1);
	}
	wait(NULL);
	return MISSED;
}

static int called_by_uevent(void)
{
	return outcome(open("/sys/kernel/uevent_helper", O_WRONLY));
}

/* A cgroup hierarchy can have a program run when the last process leaves a group. */
static int released(void)
{
	char own[16];

	if (mkdir("groups", 0777) || mount("none", "groups", "cgroup", 0, "none,name=acts") ||
	    sets("groups/release_agent", PROBE) || (mkdir("groups/one", 0777) && errno != EEXIST) ||
	    sets("groups/one/notify_on_release", "1"))
		return failed();
	snprintf(own, sizeof own, "%d", getpid());
	if (sets("groups/one/cgroup.procs", own) || sets("groups/cgroup.procs", own))
		return failed();
	return MISSED;
}

#define FORMATS "/proc/sys/fs/binfmt_misc"

static void mount_formats(void)
{
	mount("none", FORMATS, "binfmt_misc", 0, NULL);
	sets(FORMATS "/act", "-1");
	write_file("/srv/gate/program", "ACT, which a format's interpreter is to run\n");
	must(!chmod("/srv/gate/program", 0777) && !chmod(NOTICE, 0777), "chmod");
}

static int runs(const char *path)
{
	int status;
	pid_t child = fork();

	if (!child) {
		execl(path, path, NULL);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == PROBED ? REACHED
	       : WIFEXITED(status) && WEXITSTATUS(status)	  ? -WEXITSTATUS(status)
								  : MISSED;
}

/* The keeper's program is run by an interpreter of the intruder's, as the keeper. */
static int interpreted_as_keeper(void)
{
	if (sets(FORMATS "/register", ":act:M::ACT::" PROBE ":C"))
		return failed();
	return runs("/srv/gate/program");
}

/* An interpreter that is opened when the format is made known. */
static int interpreter_opened_before(void)
{
	return sets(FORMATS "/register", ":act:M::ACT::" NOTICE ":F") ? failed() : REACHED;
}

const struct act helper_acts[] = {
	{"dumped_to_helper", dumped_to_helper, noted_dump, .prepare = no_note_no_pattern},
	{"dumped_into_vault", dumped_into_vault, dump_in_vault, .prepare = no_note_no_pattern},
	{"loaded_for_format", loaded_for_format, noted, .prepare = no_note},
	{"called_by_uevent", called_by_uevent},
	{"released", released, noted, .prepare = no_note},
	{"interpreted_as_keeper", interpreted_as_keeper, .prepare = mount_formats},
	{"interpreter_opened_before", interpreter_opened_before, .prepare = mount_formats},
	{},
};
