/* SPDX-License-Identifier: MIT */
/* Contexts of files by their paths, by a handle that is opened when it is first needed. */
#define _GNU_SOURCE
#include "callbacks.h"

#include <errno.h>
#include <pthread.h>
#include <selinux/label.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct selabel_handle *opened;
static unsigned int flags;
static int (*own_invalid)(const char *path, unsigned int line, char *context);
static int (*own_canonical)(const char *path, unsigned int line, char **context);

static int open_from(const char *path)
{
	const struct selinux_opt options[] = {
		{SELABEL_OPT_PATH, path},
		{SELABEL_OPT_VALIDATE, flags & MATCHPATHCON_VALIDATE ? (char *)1 : NULL},
	};

	if (opened)
		selabel_close(opened);
	opened = selabel_open(SELABEL_CTX_FILE, options, sizeof(options) / sizeof(*options));
	return opened ? 0 : -1;
}

int matchpathcon_init(const char *path)
{
	int result;

	pthread_mutex_lock(&lock);
	result = open_from(path);
	pthread_mutex_unlock(&lock);
	return result;
}

int matchpathcon_init_prefix(const char *path, const char *prefix)
{
	(void)prefix; /* which saves time only */
	return matchpathcon_init(path);
}

void matchpathcon_fini(void)
{
	pthread_mutex_lock(&lock);
	if (opened)
		selabel_close(opened);
	opened = NULL;
	pthread_mutex_unlock(&lock);
}

int matchpathcon(const char *path, mode_t mode, char **context)
{
	int result;

	*context = NULL;
	pthread_mutex_lock(&lock);
	result = opened ? 0 : open_from(NULL);
	if (!result)
		result = selabel_lookup_raw(opened, context, path, mode);
	pthread_mutex_unlock(&lock);
	if (!result && own_canonical && own_canonical(path, 0, context))
		errno = EINVAL;
	else if (!result && !own_canonical && own_invalid && own_invalid(path, 0, *context))
		errno = EINVAL;
	else
		return result;
	freecon(*context);
	*context = NULL;
	return -1;
}

/* No tables of lines are kept (matchpathcon_filespec_add). */
int matchpathcon_index(const char *path, mode_t mode, char **context)
{
	return matchpathcon(path, mode, context);
}

void set_matchpathcon_flags(unsigned int wanted)
{
	flags = wanted;
}

void set_matchpathcon_invalidcon(int (*call)(const char *path, unsigned int line, char *context))
{
	own_invalid = call;
}

void set_matchpathcon_canoncon(int (*call)(const char *path, unsigned int line, char **context))
{
	own_canonical = call;
}

/* Messages go to the log's callback. */
void set_matchpathcon_printf(void (*call)(const char *format, ...))
{
	(void)call;
}

/* The user does not count. */
int selinux_file_context_cmp(const char *one, const char *other)
{
	const char *rest = one ? strchr(one, ':') : NULL,
		   *others = other ? strchr(other, ':') : NULL;

	if (!rest || !others)
		return !rest && !others ? 0 : rest ? 1 : -1;
	return strcmp(rest, others);
}

int selinux_file_context_verify(const char *path, mode_t mode)
{
	char *has = NULL, *should = NULL;
	int result = -1;

	if (lgetfilecon_raw(path, &has) < 0 && errno != ENOTSUP)
		return -1;
	if (!matchpathcon(path, mode, &should))
		result = !selinux_file_context_cmp(has, should);
	else if (errno == ENOENT)
		result = 1; /* it may have any */
	freecon(has);
	freecon(should);
	return result;
}

int selinux_lsetfilecon_default(const char *path)
{
	struct stat found;
	char *context;
	int result;

	if (lstat(path, &found))
		return -1;
	if (matchpathcon(path, found.st_mode, &context))
		return errno == ENOENT ? 0 : -1;
	result = lsetfilecon_raw(path, context);
	freecon(context);
	return result;
}
