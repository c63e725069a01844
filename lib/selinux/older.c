/* SPDX-License-Identifier: MIT */
/* Older calls for the same things. */
#define _GNU_SOURCE
#include "audit.h"
#include "callbacks.h"
#include "classes.h"
#include "sids.h"

#include <errno.h>
#include <limits.h>
#include <selinux/avc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct avc_log_callback own_log;

__attribute__((format(printf, 2, 3))) static int log_by_own(int type, const char *format, ...)
{
	va_list arguments;
	char *text;

	(void)type;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		own_log.func_log("%s", text);
	free(text);
	return 0;
}

static int audit_by_own(void *data, security_class_t class, char *text, size_t length)
{
	own_log.func_audit(data, class, text, length);
	return 0;
}

/* Memory, threads and locks are this library's own. */
int avc_init(const char *prefix, const struct avc_memory_callback *memory,
	     const struct avc_log_callback *log, const struct avc_thread_callback *threads,
	     const struct avc_lock_callback *locks)
{
	const char *kept = prefix ? keep_text(prefix, strlen(prefix)) : NULL;

	(void)memory;
	(void)threads;
	(void)locks;
	if (kept)
		audit_prefix = kept;
	if (log) {
		own_log = *log;
		if (own_log.func_log)
			call_log = log_by_own;
		if (own_log.func_audit)
			call_audit = audit_by_own;
	}
	return avc_open(NULL, 0);
}

void avc_cache_stats(struct avc_cache_stats *stats)
{
	*stats = (struct avc_cache_stats){0};
}

/* Booleans have no second names here. */
char *selinux_boolean_sub(const char *name)
{
	return strdup(name);
}

/* Resolves all but the last part of a path. */
int realpath_not_final(const char *name, char *resolved)
{
	char *copy = strdup(name), *slash = copy ? strrchr(copy, '/') : NULL;
	const char *folder = slash == copy ? "/" : slash ? copy : ".";
	const char *last = slash ? slash + 1 : copy;
	int result = -1;

	if (!copy)
		return -1;
	if (slash)
		*slash = 0;
	if (!strcmp(last, ".") || !strcmp(last, "..")) {
		errno = EINVAL;
	} else if (realpath(folder, resolved)) {
		size_t length = strlen(resolved);
		const char *between = length > 1 ? "/" : "";

		if (length + strlen(last) + 2 > PATH_MAX) {
			errno = ENAMETOOLONG;
		} else {
			sprintf(resolved + length, "%s%s", between, last);
			result = 0;
		}
	}
	free(copy);
	return result;
}
