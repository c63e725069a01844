/* SPDX-License-Identifier: MIT */
/* The contexts in which a user may log in, from default_contexts and the user's own file. */
#define _GNU_SOURCE
#include <errno.h>
#include <selinux/context.h>
#include <selinux/get_context_list.h>
#include <selinux/selinux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANK " \t\n"

struct list {
	char **context; /* ends with NULL */
	int count;
};

static int has(const struct list *list, const char *text)
{
	for (int i = 0; i < list->count; i++) {
		if (!strcmp(list->context[i], text))
			return 1;
	}
	return 0;
}

static int add(struct list *list, const char *text)
{
	char **fresh = reallocarray(list->context, list->count + 2, sizeof(*fresh));

	if (!fresh)
		return -1;
	list->context = fresh;
	fresh[list->count] = strdup(text);
	if (!fresh[list->count])
		return -1;
	fresh[++list->count] = NULL;
	return 0;
}

/* The context of a user with the role and type of `part`, and its range or else that of `from`;
 * NULL if the policy does not permit it. */
static context_t context_of(const char *user, const char *part, context_t from)
{
	const char *range = context_range_get(from);
	context_t context;
	char *text;

	if (asprintf(&text, "%s:%s", user, part) < 0)
		return NULL;
	context = context_new(text);
	free(text);
	if (context && !context_range_get(context) && range && context_range_set(context, range)) {
		context_free(context);
		return NULL;
	}
	if (context && context_str(context) && !security_check_context(context_str(context)))
		return context;
	context_free(context);
	return NULL;
}

static int add_part(struct list *list, const char *user, const char *part, context_t from)
{
	context_t context = context_of(user, part, from);
	int failed = 0;

	if (context && !has(list, context_str(context)))
		failed = add(list, context_str(context));
	context_free(context);
	return failed;
}

/* Whether a line is for programs of the role and type of `from`. Its level does not count. */
static int is_for(const char *word, context_t from)
{
	char *rest = strdupa(word), *role = strsep(&rest, ":"), *type = strsep(&rest, ":");

	return type && !strcmp(role, context_role_get(from)) &&
	       !strcmp(type, context_type_get(from));
}

/* Adds what the first fitting line of a file lists: `ROLE:TYPE[:LEVEL] ROLE:TYPE[:LEVEL]...`. */
static int add_file(struct list *list, const char *path, const char *user, context_t from)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char *line = NULL, *rest, *word;
	int done = !file, failed = 0;
	size_t room = 0;

	while (!done && getline(&line, &room, file) > 0) {
		word = strtok_r(line, BLANK, &rest);
		if (!word || *word == '#' || !is_for(word, from))
			continue;
		done = 1;
		while (!failed && (word = strtok_r(NULL, BLANK, &rest)))
			failed = add_part(list, user, word, from);
	}
	free(line);
	if (file)
		fclose(file);
	return failed;
}

static int add_failsafe(struct list *list, const char *user, context_t from)
{
	FILE *file = fopen(selinux_failsafe_context_path(), "re");
	char *line = NULL;
	size_t room = 0;
	int failed = 0;

	if (!file)
		return 0;
	if (getline(&line, &room, file) > 0) {
		line[strcspn(line, BLANK)] = 0;
		failed = add_part(list, user, line, from);
	}
	free(line);
	fclose(file);
	return failed;
}

static int fill(struct list *list, const char *user, context_t from)
{
	char *own;
	int failed = 0;

	/* Names of SELinux users have no slash. */
	if (!strchr(user, '/')) {
		if (asprintf(&own, "%s%s", selinux_user_contexts_path(), user) < 0)
			return -1;
		failed = add_file(list, own, user, from);
		free(own);
	}
	if (!failed)
		failed = add_file(list, selinux_default_context_path(), user, from);
	if (!failed && !list->count)
		failed = add_failsafe(list, user, from);
	return failed;
}

int get_ordered_context_list_with_level(const char *user, const char *level, const char *text,
					char ***contexts)
{
	struct list list = {0};
	char *own = NULL;
	context_t from;
	int failed;

	*contexts = NULL;
	if (!text && getcon(&own))
		return -1;
	from = context_new(text ? text : own);
	freecon(own);
	failed = !from || (level && context_range_set(from, level)) || fill(&list, user, from);
	context_free(from);
	if (!failed && list.count) {
		*contexts = list.context;
		return list.count;
	}
	freeconary(list.context);
	if (!failed)
		errno = EINVAL;
	return -1;
}

int get_ordered_context_list(const char *user, const char *from, char ***contexts)
{
	return get_ordered_context_list_with_level(user, NULL, from, contexts);
}

static int has_role(const char *text, const char *role)
{
	context_t context = context_new(text);
	int has = context && !strcmp(context_role_get(context), role);

	context_free(context);
	return has;
}

int get_default_context_with_rolelevel(const char *user, const char *role, const char *level,
				       const char *from, char **context)
{
	char **all;
	int count = get_ordered_context_list_with_level(user, level, from, &all);

	*context = NULL;
	for (int i = 0; i < count && !*context; i++) {
		if (!role || has_role(all[i], role))
			*context = strdup(all[i]);
	}
	if (count > 0) {
		freeconary(all);
		errno = EINVAL;
	}
	return *context ? 0 : -1;
}

int get_default_context_with_role(const char *user, const char *role, const char *from,
				  char **context)
{
	return get_default_context_with_rolelevel(user, role, NULL, from, context);
}

int get_default_context_with_level(const char *user, const char *level, const char *from,
				   char **context)
{
	return get_default_context_with_rolelevel(user, NULL, level, from, context);
}

int get_default_context(const char *user, const char *from, char **context)
{
	return get_default_context_with_rolelevel(user, NULL, NULL, from, context);
}
