/* SPDX-License-Identifier: MIT */
/* Labels of files, and the policy's decisions about objects. */
#define _GNU_SOURCE
#include "request.h"
#include "tollgate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Without a descriptor the request would fail with another errno than in libselinux. */
static int expect_open(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? fail(errno, "descriptor %d is not open: %m", fd) : 0;
}

int tg_fgetfilecon(int fd, char **context)
{
	struct line line = {0};

	if (!context)
		return fail(EINVAL, "no place for a context");
	if (expect_open(fd))
		return -1;
	line = request("label get", NULL);
	return ask(&line, fd, context);
}

int tg_fsetfilecon(int fd, const char *context)
{
	struct line line = {0};

	if (!context)
		return fail(EINVAL, "no context");
	if (expect_open(fd))
		return -1;
	line = request("label set", context);
	return ask(&line, fd, NULL);
}

static int open_path(const char *path, int flags)
{
	int fd = open(path, O_PATH | O_CLOEXEC | flags);

	return fd < 0 ? fail(errno, "cannot open %s: %m", path) : fd;
}

static int get_at(const char *path, int flags, char **context)
{
	int fd = open_path(path, flags), result;

	if (fd < 0)
		return -1;
	result = tg_fgetfilecon(fd, context);
	close_quietly(fd);
	return result;
}

static int set_at(const char *path, int flags, const char *context)
{
	int fd = open_path(path, flags), result;

	if (fd < 0)
		return -1;
	result = tg_fsetfilecon(fd, context);
	close_quietly(fd);
	return result;
}

int tg_getfilecon(const char *path, char **context)
{
	return get_at(path, 0, context);
}

int tg_lgetfilecon(const char *path, char **context)
{
	return get_at(path, O_NOFOLLOW, context);
}

int tg_setfilecon(const char *path, const char *context)
{
	return set_at(path, 0, context);
}

int tg_lsetfilecon(const char *path, const char *context)
{
	return set_at(path, O_NOFOLLOW, context);
}

int tg_is_enforcing(void)
{
	struct line line = request("mode", NULL);
	char *mode;
	int enforcing;

	if (ask(&line, -1, &mode))
		return -1;
	enforcing = !strcmp(mode, "enforcing");
	free(mode);
	return enforcing;
}

int tg_check_access(const char *source, const char *target, const char *object_class,
		    const char *permission)
{
	struct line line = {0};
	char *words, *rest, *word;
	int allowed = 0;

	if (!source || !target || !object_class || !permission)
		return fail(EINVAL, "no context, class or permission");
	line = request("access", source);
	put_word(&line, target);
	put_word(&line, object_class);
	/* Names of permissions are never encoded, so the answer's words can be separated. */
	if (ask(&line, -1, &words))
		return -1;
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		allowed |= !strcmp(word, permission);
	free(words);
	if (allowed)
		return 0;
	return fail(EACCES, "the policy does not allow %s %s %s %s", source, target, object_class,
		    permission);
}
