/* SPDX-License-Identifier: MIT */
/* Contexts of files by their paths, as the policy in force says, and of other objects by their
 * names. */
#define _GNU_SOURCE
#include "alias.h"
#include "callbacks.h"
#include "file_contexts.h"
#include "objects.h"
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <selinux/label.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct selabel_handle {
	struct file_contexts *files;
	struct objects *objects;
	int validates;
};

static struct file_contexts *of_policy(void)
{
	const struct policy *policy = policy_enter();
	struct file_contexts *files;

	if (!policy)
		return NULL;
	files = file_contexts_read((const char *)policy->built.file_contexts.at,
				   policy->built.file_contexts.length,
				   "file_contexts of the policy in force");
	policy_leave();
	return files;
}

static struct file_contexts *of_file(const char *path)
{
	struct file_contexts *files = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat found;
	char *text;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &found)) {
		text = malloc(found.st_size + 1);
		if (text && read(fd, text, found.st_size) == found.st_size)
			files = file_contexts_read(text, found.st_size, path);
		free(text);
	}
	close(fd);
	return files;
}

/* The file of a backend that is not about files; NULL: there is none. */
static const char *file_of(unsigned int backend)
{
	switch (backend) {
	case SELABEL_CTX_MEDIA:
		return selinux_media_context_path();
	case SELABEL_CTX_X:
		return selinux_x_context_path();
	case SELABEL_CTX_DB:
		return selinux_sepgsql_context_path();
	}
	return NULL;
}

static int fill(struct selabel_handle *handle, unsigned int backend, const char *path)
{
	if (backend == SELABEL_CTX_FILE) {
		/* The system's file is what the policy in force was built with, or older. */
		handle->files = path && strcmp(path, selinux_file_context_path()) ? of_file(path)
										  : of_policy();
		return handle->files ? 0 : -1;
	}
	if (!path)
		path = file_of(backend);
	if (!path) {
		errno = ENOTSUP;
		return -1;
	}
	handle->objects = objects_read(backend, path);
	return handle->objects ? 0 : -1;
}

struct selabel_handle *selabel_open(unsigned int backend, const struct selinux_opt *options,
				    unsigned int count)
{
	struct selabel_handle *handle = calloc(1, sizeof(*handle));
	const char *path = NULL;

	if (!handle)
		return NULL;
	for (unsigned int i = 0; i < count; i++) {
		if (options[i].type == SELABEL_OPT_PATH)
			path = options[i].value;
		else if (options[i].type == SELABEL_OPT_VALIDATE)
			handle->validates = options[i].value != NULL;
	}
	if (!fill(handle, backend, path))
		return handle;
	selabel_close(handle);
	return NULL;
}

void selabel_close(struct selabel_handle *handle)
{
	int number = errno;

	if (handle && handle->files)
		file_contexts_free(handle->files);
	if (handle && handle->objects)
		objects_free(handle->objects);
	free(handle);
	errno = number;
}

/* A path without doubled slashes, nor one at its end; NULL: no memory. */
static char *tidied(const char *path)
{
	char *tidy = strdup(path), *to = tidy;

	for (; tidy && *path; path++) {
		if (*path != '/' || to == tidy || to[-1] != '/')
			*to++ = *path;
	}
	if (tidy) {
		if (to > tidy + 1 && to[-1] == '/')
			to--;
		*to = 0;
	}
	return tidy;
}

/* What a handle says of a name, which stays its own, and how much of the name its line spells out;
 * NULL with errno. */
static const char *find(struct selabel_handle *handle, const char *key, int type, size_t *spelt)
{
	const char *found;
	char *path;

	*spelt = 0;
	if (handle->objects)
		return objects_find(handle->objects, key, type);
	path = tidied(key);
	if (!path)
		return NULL;
	found = file_contexts_find(handle->files, path, type, spelt);
	free(path);
	return found;
}

/* A copy of a context for the program. */
static int give(struct selabel_handle *handle, const char *found, char **context)
{
	*context = found ? strdup(found) : NULL;
	if (*context && handle->validates && call_validate(context)) {
		freecon(*context);
		*context = NULL;
		errno = EINVAL;
	}
	return *context ? 0 : -1;
}

int selabel_lookup_raw(struct selabel_handle *handle, char **context, const char *key, int type)
{
	size_t spelt;

	return give(handle, find(handle, key, type, &spelt), context);
}

int selabel_lookup_best_match_raw(struct selabel_handle *handle, char **context, const char *key,
				  const char **aliases, int type)
{
	size_t best, spelt;
	const char *found = find(handle, key, type, &best);

	for (int i = 0; aliases && aliases[i]; i++) {
		const char *other = find(handle, aliases[i], type, &spelt);

		if (other && (!found || spelt > best)) {
			found = other;
			best = spelt;
		}
	}
	return give(handle, found, context);
}

SAME(selabel_lookup);
SAME(selabel_lookup_best_match);

bool selabel_partial_match(struct selabel_handle *handle, const char *key)
{
	char *path = handle->files ? tidied(key) : NULL;
	int reached = path && file_contexts_reach(handle->files, path);

	free(path);
	return reached;
}

/* Only a handle is known to be equal to itself. */
enum selabel_cmp_result selabel_cmp(struct selabel_handle *one, struct selabel_handle *other)
{
	return one == other ? SELABEL_EQUAL : SELABEL_INCOMPARABLE;
}

void selabel_stats(struct selabel_handle *handle)
{
	(void)handle;
}
