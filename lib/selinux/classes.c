/* SPDX-License-Identifier: MIT */
/* Names of classes and permissions. */
#define _GNU_SOURCE
#include "classes.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare(const void *one, const void *other)
{
	return strcmp(one, other);
}

const char *keep_text(const char *text, size_t length)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static void *kept;
	char *copy = strndup(text, length);
	const char **found;

	if (!copy)
		return NULL;
	pthread_mutex_lock(&lock);
	found = tsearch(copy, &kept, compare);
	pthread_mutex_unlock(&lock);
	if (!found || *found != copy)
		free(copy);
	return found ? *found : NULL;
}

static const char *keep(struct bytes name)
{
	return name.length ? keep_text((const char *)name.at, name.length) : NULL;
}

security_class_t string_to_security_class(const char *name)
{
	const struct policy *policy = policy_enter();
	long class = -1;
	security_class_t own = 0;

	if (!policy)
		return 0;
	class = names_find(&policy->names, CLASS, name, strlen(name));
	if (class > 0)
		own = class_from(policy, class);
	policy_leave();
	if (!own)
		errno = EINVAL;
	return own;
}

const char *security_class_to_string(security_class_t class)
{
	const struct policy *policy = policy_enter();
	const char *text;

	if (!policy)
		return NULL;
	text = keep(names_get(&policy->names, CLASS, class_of(policy, class)));
	policy_leave();
	if (!text)
		errno = EINVAL;
	return text;
}

access_vector_t string_to_av_perm(security_class_t class, const char *name)
{
	const struct policy *policy = policy_enter();
	access_vector_t own = 0;
	const struct permissions *all;

	if (!policy)
		return 0;
	all = &policy->names.permissions[class_of(policy, class)];
	for (unsigned int bit = 0; bit < all->count && !own; bit++) {
		if (all->name[bit].length == strlen(name) &&
		    !memcmp(all->name[bit].at, name, all->name[bit].length))
			own = vector_from(policy, class, 1u << bit);
	}
	policy_leave();
	if (!own)
		errno = EINVAL;
	return own;
}

const char *security_av_perm_to_string(security_class_t class, access_vector_t own)
{
	const struct policy *policy = policy_enter();
	const char *text = NULL;
	access_vector_t vector;
	const struct permissions *all;

	if (!policy)
		return NULL;
	vector = vector_of(policy, class, own);
	all = &policy->names.permissions[class_of(policy, class)];
	for (unsigned int bit = 0; bit < all->count && !text; bit++) {
		if (vector >> bit & 1)
			text = keep(all->name[bit]);
	}
	policy_leave();
	if (!text)
		errno = EINVAL;
	return text;
}

int security_av_string(security_class_t class, access_vector_t vector, char **result)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	*result = NULL;
	if (!to)
		return -1;
	fputs(vector ? "{ " : "null", to);
	for (unsigned int bit = 0; bit < MOST_PERMISSIONS; bit++) {
		const char *name =
			vector >> bit & 1 ? security_av_perm_to_string(class, 1u << bit) : NULL;

		if (name)
			fprintf(to, "%s ", name);
	}
	if (vector)
		fputc('}', to);
	if (!fclose(to)) {
		*result = text;
		return 0;
	}
	free(text);
	errno = ENOMEM;
	return -1;
}

void print_access_vector(security_class_t class, access_vector_t vector)
{
	access_vector_t left = vector;

	if (!vector) {
		printf(" null");
		return;
	}
	printf(" {");
	for (unsigned int bit = 0; bit < MOST_PERMISSIONS; bit++) {
		const char *name =
			vector >> bit & 1 ? security_av_perm_to_string(class, 1u << bit) : NULL;

		if (name) {
			printf(" %s", name);
			left &= ~(1u << bit);
		}
	}
	if (left)
		printf(" 0x%x", left);
	printf(" }");
}

security_class_t mode_to_security_class(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return string_to_security_class("file");
	case S_IFDIR:
		return string_to_security_class("dir");
	case S_IFCHR:
		return string_to_security_class("chr_file");
	case S_IFBLK:
		return string_to_security_class("blk_file");
	case S_IFIFO:
		return string_to_security_class("fifo_file");
	case S_IFLNK:
		return string_to_security_class("lnk_file");
	case S_IFSOCK:
		return string_to_security_class("sock_file");
	}
	errno = EINVAL;
	return 0;
}

/* Names are looked up in the policy each time. */
void selinux_flush_class_cache(void)
{
}
