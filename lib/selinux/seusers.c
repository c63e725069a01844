/* SPDX-License-Identifier: MIT */
/* The SELinux users of the system's users, from seusers. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <selinux/context.h>
#include <selinux/get_default_type.h>
#include <selinux/selinux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT "__default__"
#define MOST_GROUPS 1024

struct entry {
	char *user, *level;
};

/* What fits better counts. */
enum fit { NOTHING, BY_DEFAULT, BY_GROUP, BY_NAME };

static int is_member(const char *user, const char *group)
{
	const struct passwd *found = getpwnam(user);
	gid_t primary = found ? found->pw_gid : (gid_t)-1, groups[MOST_GROUPS];
	const struct group *wanted = found ? getgrnam(group) : NULL;
	int count = MOST_GROUPS;

	if (!wanted || getgrouplist(user, primary, groups, &count) < 0)
		return 0;
	for (int i = 0; i < count; i++) {
		if (groups[i] == wanted->gr_gid)
			return 1;
	}
	return 0;
}

static enum fit fit(const char *pattern, const char *user)
{
	if (!strcmp(pattern, user))
		return BY_NAME;
	if (*pattern == '%' && is_member(user, pattern + 1))
		return BY_GROUP;
	return strcmp(pattern, DEFAULT) ? NOTHING : BY_DEFAULT;
}

/* Takes `NAME:USER[:LEVEL]` over, if it fits better than what was found before. */
static int read_line(char *line, const char *user, struct entry *found, enum fit *best)
{
	char *rest = line + strspn(line, " \t"), *pattern, *own;
	struct entry fresh;
	enum fit now;

	rest[strcspn(rest, "\n")] = 0;
	if (!*rest || *rest == '#')
		return 0;
	pattern = strsep(&rest, ":");
	own = strsep(&rest, ":");
	now = own ? fit(pattern, user) : NOTHING;
	if (now <= *best)
		return 0;
	fresh = (struct entry){strdup(own), rest ? strdup(rest) : NULL};
	if (!fresh.user || (rest && !fresh.level)) {
		free(fresh.user);
		return -1;
	}
	free(found->user);
	free(found->level);
	*found = fresh;
	*best = now;
	return 0;
}

static int search(const char *path, const char *name, struct entry *found)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	enum fit best = NOTHING;
	char *line = NULL;
	size_t room = 0;
	int failed = 0;

	while (file && !failed && getline(&line, &room, file) > 0)
		failed = read_line(line, name, found, &best);
	free(line);
	if (file)
		fclose(file);
	return failed;
}

static int give(struct entry found, const char *name, char **user, char **level)
{
	if (!found.user)
		found.user = strdup(name);
	if (!is_selinux_mls_enabled()) {
		free(found.level);
		found.level = NULL;
	}
	*user = found.user;
	*level = found.level;
	return found.user ? 0 : -1;
}

int getseuserbyname(const char *name, char **user, char **level)
{
	struct entry found = {0};

	if (search(selinux_usersconf_path(), name, &found))
		return -1;
	return give(found, name, user, level);
}

/* The lines of a user's own file are `SERVICE:USER[:LEVEL]`, `*` for all services. */
int getseuser(const char *name, const char *service, char **user, char **level)
{
	struct entry found = {0};
	char *path;
	int failed;

	if (strchr(name, '/') || asprintf(&path, "%s/logins/%s", selinux_policy_root(), name) < 0)
		return -1;
	failed = search(path, service, &found);
	if (!failed && !found.user)
		failed = search(path, "*", &found);
	free(path);
	if (failed)
		return -1;
	return found.user ? give(found, name, user, level) : getseuserbyname(name, user, level);
}

/* Whether a file has a line with this word; -1 if it cannot be read. */
static int has_line(const char *path, const char *word)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	if (!file)
		return -1;
	while (!found && getline(&line, &room, file) > 0) {
		line[strcspn(line, " \t\n")] = 0;
		found = !strcmp(line, word);
	}
	free(line);
	fclose(file);
	return found;
}

/* Whether the administrator may have given a file this type, so that it should stay. */
int is_context_customizable(const char *text)
{
	context_t context = context_new(text);
	int found = -1;

	if (context)
		found = has_line(selinux_customizable_types_path(), context_type_get(context));
	context_free(context);
	return found;
}

int get_default_type(const char *role, char **type)
{
	FILE *file = fopen(selinux_default_type_path(), "re");
	size_t length = strlen(role), room = 0;
	char *line = NULL;
	int result = -1;

	*type = NULL;
	if (!file)
		return -1;
	while (!*type && getline(&line, &room, file) > 0) {
		if (!strncmp(line, role, length) && line[length] == ':')
			*type = strndup(line + length + 1, strcspn(line + length + 1, " \t\n"));
	}
	free(line);
	fclose(file);
	if (*type)
		result = 0;
	else
		errno = EINVAL;
	return result;
}
