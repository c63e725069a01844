/* SPDX-License-Identifier: MIT */
/* Contexts of processes, files and peers, by the daemon (../process.c, ../object.c, ../peer.c). */
#define _GNU_SOURCE
#include "../tollgate.h"
#include "alias.h"

#include <errno.h>
#include <selinux/selinux.h>
#include <stdlib.h>
#include <string.h>

/* A call that libtollgate has with the same arguments. */
#define GET(name)                                                                                  \
	int name##_raw(char **context)                                                             \
	{                                                                                          \
		*context = NULL;                                                                   \
		return tg_##name(context);                                                         \
	}                                                                                          \
	SAME(name)
#define SET(name)                                                                                  \
	int name##_raw(const char *context)                                                        \
	{                                                                                          \
		return tg_##name(context);                                                         \
	}                                                                                          \
	SAME(name)

GET(getcon);
GET(getprevcon);
GET(getexeccon);
GET(getfscreatecon);
GET(getkeycreatecon);
GET(getsockcreatecon);
SET(setcon);
SET(setexeccon);
SET(setfscreatecon);
SET(setkeycreatecon);
SET(setsockcreatecon);

int getpidcon_raw(pid_t pid, char **context)
{
	*context = NULL;
	return tg_getpidcon(pid, context);
}

int getpeercon_raw(int fd, char **context)
{
	*context = NULL;
	return tg_getpeercon(fd, context);
}

/* Whether there are labels; without them a file has no such attribute. */
static int has_labels(void)
{
	int enabled = is_selinux_enabled();

	if (!enabled)
		errno = ENOTSUP;
	return enabled;
}

/* What libselinux returns of a label: its length with the zero byte. */
static int length_of(int result, char *const *context)
{
	return result ? -1 : (int)strlen(*context) + 1;
}

int getfilecon_raw(const char *path, char **context)
{
	*context = NULL;
	return has_labels() ? length_of(tg_getfilecon(path, context), context) : -1;
}

int lgetfilecon_raw(const char *path, char **context)
{
	*context = NULL;
	return has_labels() ? length_of(tg_lgetfilecon(path, context), context) : -1;
}

int fgetfilecon_raw(int fd, char **context)
{
	*context = NULL;
	return has_labels() ? length_of(tg_fgetfilecon(fd, context), context) : -1;
}

int setfilecon_raw(const char *path, const char *context)
{
	return has_labels() ? tg_setfilecon(path, context) : -1;
}

int lsetfilecon_raw(const char *path, const char *context)
{
	return has_labels() ? tg_lsetfilecon(path, context) : -1;
}

int fsetfilecon_raw(int fd, const char *context)
{
	return has_labels() ? tg_fsetfilecon(fd, context) : -1;
}

SAME(getpidcon);
SAME(getpeercon);
SAME(getfilecon);
SAME(lgetfilecon);
SAME(fgetfilecon);
SAME(setfilecon);
SAME(lsetfilecon);
SAME(fsetfilecon);

void freecon(char *context)
{
	free(context);
}

void freeconary(char **contexts)
{
	for (char **one = contexts; one && *one; one++)
		free(*one);
	free(contexts);
}
