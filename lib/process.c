/* SPDX-License-Identifier: MIT */
/* Contexts of processes. */
#define _GNU_SOURCE
#include "request.h"
#include "tollgate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* crates/abi/paths.h has these; a test holds them equal. */
#define CONTEXTS "/run/tollgate/contexts"
#define TASKS "/sys/fs/bpf/tollgate/maps/tasks"
#define MACHINE 28 /* SID of processes without a label */

/* These are defined in enforcer.h. */
#define TG_PRCTL 0x54474154u
enum attribute { CURRENT = 1, EXEC, FSCREATE, KEYCREATE, SOCKCREATE };

int text_of_sid(uint32_t wanted, char **context)
{
	FILE *file = fopen(CONTEXTS, "re");
	char *line = NULL, *text;
	size_t room = 0;
	int result = 1;

	if (!file)
		return fail(errno, "cannot read " CONTEXTS ": %m");
	while (result > 0 && getline(&line, &room, file) > 0) {
		if (strtoul(line, &text, 10) != wanted || *text != ' ')
			continue;
		text[strcspn(text, "\n")] = 0;
		*context = strdup(text + 1);
		result = *context ? 0 : fail(ENOMEM, "no memory for a context");
	}
	if (result > 0)
		result = fail(ENOENT, "it is not known what SID %u stands for", wanted);
	free(line);
	fclose(file);
	return result;
}

/* The SID of a process from the kernel's map. This works without a daemon, for processes that
 * may read the map. */
static int sid_of(int process, uint32_t *sid)
{
	union bpf_attr get = {.pathname = (uintptr_t)TASKS, .file_flags = BPF_F_RDONLY};
	union bpf_attr look = {0}, tell = {0};
	struct bpf_map_info info = {0};
	uint32_t value[256] = {0};
	int map = syscall(SYS_bpf, BPF_OBJ_GET, &get, sizeof(get)), result = -1;

	if (map < 0)
		return fail(errno,
			    "no daemon answers, start it with `tollgate enforce POLICY`; and " TASKS
			    " cannot be read: %m");
	tell.info.bpf_fd = map;
	tell.info.info = (uintptr_t)&info;
	tell.info.info_len = sizeof(info);
	look.map_fd = map;
	look.key = (uintptr_t)&process;
	look.value = (uintptr_t)value;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &tell, sizeof(tell)))
		fail(errno, "cannot look at " TASKS ": %m");
	else if (info.value_size > sizeof(value))
		fail(EPROTO, TASKS " is of another version than this library");
	else if (!syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &look, sizeof(look)) || errno == ENOENT)
		result = 0;
	else
		fail(errno, "cannot look a process up in " TASKS ": %m");
	*sid = value[0] ? value[0] : MACHINE;
	close_quietly(map);
	return result;
}

/* A context of the process of a pidfd; -1: of the calling process. */
static int get_of(const char *words, int process, char **context)
{
	struct line line = {0};
	int result;

	if (!context)
		return fail(EINVAL, "no place for a context");
	line = request(words, NULL);
	result = ask(&line, process, context);
	if (!result && !**context) {
		free(*context);
		*context = NULL;
	}
	return result;
}

/* A context of the calling thread. The daemon sees the process, which means its first thread.
 * For another thread there is a pidfd since Linux 6.9 (PIDFD_THREAD). */
static int get(const char *words, char **context)
{
	pid_t thread = syscall(SYS_gettid);
	int own, result;

	if (thread == getpid())
		return get_of(words, -1, context);
	own = syscall(SYS_pidfd_open, thread, O_EXCL);
	if (own < 0)
		return fail(EOPNOTSUPP, "this kernel tells contexts of first threads only: %m");
	result = get_of(words, own, context);
	close_quietly(own);
	return result;
}

int tg_getpidcon(pid_t pid, char **context)
{
	int process = syscall(SYS_pidfd_open, pid, 0), result;
	uint32_t sid;

	/* libselinux does not find /proc/PID if there is no such process. */
	if (process < 0)
		return fail(errno == ESRCH ? ENOENT : errno, "cannot open process %d: %m",
			    (int)pid);
	result = get_of("get current", process, context);
	if (result && (errno == ENOENT || errno == ECONNREFUSED)) {
		result = sid_of(process, &sid);
		if (!result)
			result = text_of_sid(sid, context);
	}
	close_quietly(process);
	return result;
}

int tg_getcon(char **context)
{
	int result = get("get current", context);

	if (result && (errno == ENOENT || errno == ECONNREFUSED))
		return tg_getpidcon(getpid(), context);
	return result;
}

int tg_getprevcon(char **context)
{
	return get("get prev", context);
}

int tg_getexeccon(char **context)
{
	return get("get exec", context);
}

int tg_getfscreatecon(char **context)
{
	return get("get fscreate", context);
}

int tg_getkeycreatecon(char **context)
{
	return get("get keycreate", context);
}

int tg_getsockcreatecon(char **context)
{
	return get("get sockcreate", context);
}

static const char *remedy(int number)
{
	if (number == EACCES)
		return " (the policy does not allow it, or not with a descriptor that is open: "
		       "`tollgate audit` has the denial)";
	if (number == EPERM)
		return " (the process has several threads, and the context is not bounded by its "
		       "own)";
	return "";
}

/* Gives the calling thread a SID. A hook of the kernel's cannot say "done", which EALREADY stands
 * for; EAGAIN: somebody looked at the process, which could then have been one of several threads.
 *
 * A thread becomes another subject with credentials of its own: by those that it has it is known
 * who opened files. Those that PR_SET_KEEPCAPS makes are the same as before.
 */
static int give(enum attribute attribute, unsigned long sid)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int tries = 0; tries < 100; tries++) {
		if (attribute == CURRENT &&
		    prctl(PR_SET_KEEPCAPS, (long)prctl(PR_GET_KEEPCAPS, 0l, 0l, 0l, 0l), 0l, 0l,
			  0l))
			return fail(errno, "the thread gets no credentials of its own: %m");
		if (!prctl(TG_PRCTL, (unsigned long)attribute, sid, 0ul, 0ul))
			break;
		if (errno == EALREADY)
			return 0;
		if (errno == EINVAL)
			break;
		if (errno != EAGAIN)
			return fail(errno, "cannot set the context: %m%s", remedy(errno));
		nanosleep(&pause, NULL);
	}
	if (errno == EAGAIN)
		return fail(EPERM, "another process shares this one's memory");
	return fail(EOPNOTSUPP, "nothing is enforced here");
}

int become(unsigned long sid)
{
	return give(CURRENT, sid);
}

static int set(enum attribute attribute, const char *words, const char *context)
{
	unsigned long sid = 0;
	char *word, *end;

	if (context) {
		struct line line = request(words, context);

		if (ask(&line, -1, &word))
			return -1;
		sid = strtoul(word, &end, 10);
		free(word);
		if (!sid)
			return fail(EPROTO, "the daemon's answer is garbled");
	}
	return give(attribute, sid);
}

int tg_setcon(const char *context)
{
	if (!context)
		return fail(EINVAL, "no context");
	return set(CURRENT, "sid current", context);
}

int tg_setexeccon(const char *context)
{
	return set(EXEC, "sid exec", context);
}

int tg_setfscreatecon(const char *context)
{
	return set(FSCREATE, "sid fscreate", context);
}

int tg_setkeycreatecon(const char *context)
{
	return set(KEYCREATE, "sid keycreate", context);
}

int tg_setsockcreatecon(const char *context)
{
	return set(SOCKCREATE, "sid sockcreate", context);
}
