/* SPDX-License-Identifier: MIT */
/* Where the configuration of SELinux's user space is, by /etc/selinux/config. */
#define _GNU_SOURCE
#include "classes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ETC "/etc/selinux/"
#define DEFAULT_TYPE "targeted"
#define MOST 4096 /* bytes of a path */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root; /* /etc/selinux/TYPE; NULL: not read yet */

/* The word behind a setting in the configuration, allocated; NULL: it does not have it. */
static char *setting(const char *name)
{
	FILE *file = fopen(ETC "config", "re");
	char *line = NULL, *value = NULL;
	size_t room = 0, length = strlen(name);

	while (file && !value && getline(&line, &room, file) > 0) {
		char *word = line + strspn(line, " \t");

		if (!strncmp(word, name, length))
			value = strndup(word + length, strcspn(word + length, " \t\n"));
	}
	free(line);
	if (file)
		fclose(file);
	return value;
}

/* The kind of policy, which is a folder's name. */
static char *policy_type(void)
{
	char *type = setting("SELINUXTYPE=");

	if (type && *type && !strchr(type, '/'))
		return type;
	free(type);
	return strdup(DEFAULT_TYPE);
}

static const char *kept(const char *folder, const char *rest)
{
	char path[MOST];

	if ((size_t)snprintf(path, sizeof(path), "%s%s", folder, rest) >= sizeof(path))
		return NULL;
	return keep_text(path, strlen(path));
}

const char *selinux_policy_root(void)
{
	const char *found;

	pthread_mutex_lock(&lock);
	if (!root) {
		char *type = policy_type();

		/* Programs keep the paths, so none is ever freed. */
		root = type ? kept(ETC, type) : NULL;
		free(type);
	}
	found = root;
	pthread_mutex_unlock(&lock);
	return found;
}

int selinux_set_policy_root(const char *path)
{
	const char *fresh = keep_text(path, strlen(path));

	if (!fresh || !strchr(path, '/')) {
		errno = fresh ? EINVAL : ENOMEM;
		return -1;
	}
	pthread_mutex_lock(&lock);
	root = fresh;
	pthread_mutex_unlock(&lock);
	return 0;
}

void selinux_reset_config(void)
{
	pthread_mutex_lock(&lock);
	root = NULL;
	pthread_mutex_unlock(&lock);
}

int selinux_getpolicytype(char **type)
{
	*type = policy_type();
	return *type ? 0 : -1;
}

int selinux_getenforcemode(int *mode)
{
	static const struct {
		const char *name;
		int mode;
	} modes[] = {{"enforcing", 1}, {"permissive", 0}, {"disabled", -1}};
	char *word = setting("SELINUX=");
	int result = -1;

	for (size_t i = 0; word && i < sizeof(modes) / sizeof(*modes); i++) {
		if (!strcasecmp(word, modes[i].name)) {
			*mode = modes[i].mode;
			result = 0;
		}
	}
	free(word);
	return result;
}

const char *selinux_path(void)
{
	return ETC;
}

#define BELOW_ROOT(name, rest)                                                                     \
	const char *selinux_##name##_path(void)                                                    \
	{                                                                                          \
		const char *folder = selinux_policy_root();                                        \
                                                                                                   \
		return folder ? kept(folder, rest) : NULL;                                         \
	}

BELOW_ROOT(binary_policy, "/policy/policy")
BELOW_ROOT(booleans, "/booleans")
BELOW_ROOT(booleans_subs, "/booleans.subs_dist")
BELOW_ROOT(colors, "/secolor.conf")
BELOW_ROOT(contexts, "/contexts")
BELOW_ROOT(customizable_types, "/contexts/customizable_types")
BELOW_ROOT(default_context, "/contexts/default_contexts")
BELOW_ROOT(default_type, "/contexts/default_type")
BELOW_ROOT(failsafe_context, "/contexts/failsafe_context")
BELOW_ROOT(file_context, "/contexts/files/file_contexts")
BELOW_ROOT(file_context_homedir, "/contexts/files/file_contexts.homedirs")
BELOW_ROOT(file_context_local, "/contexts/files/file_contexts.local")
BELOW_ROOT(file_context_subs, "/contexts/files/file_contexts.subs")
BELOW_ROOT(file_context_subs_dist, "/contexts/files/file_contexts.subs_dist")
BELOW_ROOT(homedir_context, "/contexts/files/homedir_template")
BELOW_ROOT(lxc_contexts, "/contexts/lxc_contexts")
BELOW_ROOT(media_context, "/contexts/files/media")
BELOW_ROOT(netfilter_context, "/contexts/netfilter_contexts")
BELOW_ROOT(openrc_contexts, "/contexts/openrc_contexts")
BELOW_ROOT(openssh_contexts, "/contexts/openssh_contexts")
BELOW_ROOT(removable_context, "/contexts/removable_context")
BELOW_ROOT(securetty_types, "/contexts/securetty_types")
BELOW_ROOT(sepgsql_context, "/contexts/sepgsql_contexts")
BELOW_ROOT(snapperd_contexts, "/contexts/snapperd_contexts")
BELOW_ROOT(systemd_contexts, "/contexts/systemd_contexts")
BELOW_ROOT(translations, "/setrans.conf")
BELOW_ROOT(user_contexts, "/contexts/users/")
BELOW_ROOT(users, "/users/")
BELOW_ROOT(usersconf, "/seusers")
BELOW_ROOT(virtual_domain_context, "/contexts/virtual_domain_context")
BELOW_ROOT(virtual_image_context, "/contexts/virtual_image_context")
BELOW_ROOT(x_context, "/contexts/x_contexts")
