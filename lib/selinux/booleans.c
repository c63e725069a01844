/* SPDX-License-Identifier: MIT */
/* The policy's booleans, and its initial contexts. */
#define _GNU_SOURCE
#include "../request.h"
#include "alias.h"
#include "policy.h"

#include <errno.h>
#include <selinux/selinux.h>
#include <stdlib.h>
#include <string.h>

int security_get_boolean_names(char ***names, int *length)
{
	const struct policy *policy = policy_enter();
	const struct list *all;
	char **copies;

	if (!policy)
		return -1;
	all = &policy->names.list[BOOLEAN];
	copies = calloc((size_t)all->count + 1, sizeof(*copies));
	for (uint32_t i = 0; copies && i < all->count; i++) {
		copies[i] = strndup((const char *)all->name[i].at, all->name[i].length);
		if (!copies[i]) {
			freeconary(copies);
			copies = NULL;
		}
	}
	*length = all->count;
	*names = copies;
	policy_leave();
	return copies ? 0 : -1;
}

int security_get_boolean_active(const char *name)
{
	const struct policy *policy = policy_enter();
	long number;
	int value;

	if (!policy)
		return -1;
	number = names_find(&policy->names, BOOLEAN, name, strlen(name));
	value = number < 0 ? -1 : policy->names.value[number];
	policy_leave();
	if (value < 0)
		errno = ENOENT;
	return value;
}

/* A boolean is changed by putting another policy in force, so none is ever pending. */
extern __typeof__(security_get_boolean_active) security_get_boolean_pending
	__attribute__((alias("security_get_boolean_active")));

/* By SID from 1 on, as the kernel names them. */
static const char *const initial[] = {
	"kernel",
	"security",
	"unlabeled",
	"fs",
	"file",
	"file_labels",
	"init",
	"any_socket",
	"port",
	"netif",
	"netmsg",
	"node",
	"igmp_packet",
	"icmp_socket",
	"tcp_socket",
	"sysctl_modprobe",
	"sysctl",
	"sysctl_fs",
	"sysctl_kernel",
	"sysctl_net",
	"sysctl_net_unix",
	"sysctl_vm",
	"sysctl_dev",
	"kmod",
	"policy",
	"scmp_packet",
	"devnull",
};

int security_get_initial_context_raw(const char *name, char **context)
{
	*context = NULL;
	for (unsigned int i = 0; i < sizeof(initial) / sizeof(*initial); i++) {
		if (!strcmp(initial[i], name))
			return text_of_sid(i + 1, context);
	}
	errno = ENOENT;
	return -1;
}

SAME(security_get_initial_context);
