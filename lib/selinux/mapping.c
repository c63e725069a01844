/* SPDX-License-Identifier: MIT */
/* The program's own numbers of classes and permissions. */
#define _GNU_SOURCE
#include "classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A class that the program has named, with the policy's numbers. */
struct mapped {
	struct security_class_mapping names;
	uint32_t class;
	access_vector_t permission[MOST_PERMISSIONS];
	unsigned int permissions;
};

struct mapping {
	struct mapped *entry; /* by the program's number, [0] unused; NULL: the policy's are used */
	unsigned int classes;
	unsigned int
		sequence; /* the page's as of the policy's numbers: another policy has others */
};

/* What policy_enter() locks protects it, too. */
static struct mapping map;

static access_vector_t bit_of(const struct policy *policy, uint32_t class, const char *name)
{
	const struct permissions *all = &policy->names.permissions[class];

	for (unsigned int bit = 0; bit < all->count; bit++) {
		if (all->name[bit].length == strlen(name) &&
		    !memcmp(all->name[bit].at, name, all->name[bit].length))
			return 1u << bit;
	}
	return 0;
}

static void look_up(const struct policy *policy, struct mapped *mapped)
{
	long class =
		names_find(&policy->names, CLASS, mapped->names.name, strlen(mapped->names.name));

	mapped->class = class < 0 ? 0 : class;
	for (unsigned int i = 0; i < mapped->permissions; i++)
		mapped->permission[i] =
			mapped->class ? bit_of(policy, mapped->class, mapped->names.perms[i]) : 0;
}

/* The entry of a class; NULL: the program has no mapping, or not this class in it. */
static struct mapped *entry(const struct policy *policy, security_class_t class)
{
	if (map.entry && map.sequence != policy->sequence) {
		for (unsigned int i = 1; i < map.classes; i++)
			look_up(policy, &map.entry[i]);
		map.sequence = policy->sequence;
	}
	return map.entry && class && class < map.classes ? &map.entry[class] : NULL;
}

uint32_t class_of(const struct policy *policy, security_class_t class)
{
	const struct mapped *mapped = entry(policy, class);

	if (mapped)
		return mapped->class;
	return map.entry || class >= policy->names.list[CLASS].count ? 0 : class;
}

security_class_t class_from(const struct policy *policy, uint32_t class)
{
	for (unsigned int i = 1; map.entry && i < map.classes; i++) {
		if (entry(policy, i)->class == class)
			return i;
	}
	return map.entry ? 0 : class;
}

/* The bits of `vector` of which the permission is in `theirs`, or not in the policy if `unknown`.
 */
static access_vector_t turn(const struct mapped *mapped, access_vector_t theirs, int unknown)
{
	access_vector_t own = 0;

	for (unsigned int bit = 0; bit < mapped->permissions; bit++) {
		access_vector_t permission = mapped->permission[bit];

		if (permission ? theirs & permission : (access_vector_t)unknown)
			own |= 1u << bit;
	}
	return own;
}

access_vector_t vector_of(const struct policy *policy, security_class_t class, access_vector_t own)
{
	const struct mapped *mapped = entry(policy, class);
	access_vector_t theirs = 0;

	if (!mapped)
		return own;
	for (unsigned int bit = 0; bit < mapped->permissions; bit++) {
		if (own >> bit & 1)
			theirs |= mapped->permission[bit];
	}
	return theirs;
}

access_vector_t vector_from(const struct policy *policy, security_class_t class,
			    access_vector_t theirs)
{
	const struct mapped *mapped = entry(policy, class);

	return mapped ? turn(mapped, theirs, 0) : theirs;
}

void map_decision(const struct policy *policy, security_class_t class, struct av_decision *decision)
{
	const struct mapped *mapped = entry(policy, class);
	int deny = policy->names.deny_unknown;
	access_vector_t beyond;

	if (!mapped)
		return;
	/* A check of what the program has not named is its mistake, and audited. */
	beyond = mapped->permissions < 32 ? ~0u << mapped->permissions : 0;
	decision->allowed = turn(mapped, decision->allowed, !deny);
	decision->decided = turn(mapped, decision->decided, !deny);
	decision->auditallow = turn(mapped, decision->auditallow, 0);
	decision->auditdeny = turn(mapped, decision->auditdeny, deny) | beyond;
}

static void free_mapping(struct mapping *old)
{
	for (unsigned int i = 1; old->entry && i < old->classes; i++) {
		free((char *)old->entry[i].names.name);
		for (unsigned int bit = 0; bit < MOST_PERMISSIONS; bit++)
			free((char *)old->entry[i].names.perms[bit]);
	}
	free(old->entry);
}

/* Copies an entry. Returns -1 if there is no memory; what was copied can be freed. */
static int copy(struct mapped *to, const struct security_class_mapping *from)
{
	to->names.name = strdup(from->name);
	if (!to->names.name)
		return -1;
	for (unsigned int i = 0; i < MOST_PERMISSIONS && from->perms[i]; i++) {
		to->names.perms[i] = strdup(from->perms[i]);
		if (!to->names.perms[i])
			return -1;
		to->permissions++;
	}
	return 0;
}

/* A policy that rejects what it does not define must have all that the program names. */
static int accepted(const struct policy *policy, const struct mapped *mapped)
{
	if (!policy->names.reject_unknown)
		return 1;
	for (unsigned int bit = 0; bit < mapped->permissions; bit++) {
		if (!mapped->permission[bit] && *mapped->names.perms[bit])
			return 0;
	}
	return mapped->class != 0;
}

static int fill(const struct policy *policy, struct mapping *fresh,
		const struct security_class_mapping *wanted)
{
	for (unsigned int i = 1; i < fresh->classes; i++) {
		if (copy(&fresh->entry[i], &wanted[i - 1]))
			return -1;
		look_up(policy, &fresh->entry[i]);
		if (!accepted(policy, &fresh->entry[i])) {
			errno = EINVAL;
			return -1;
		}
	}
	fresh->sequence = policy->sequence;
	return 0;
}

int selinux_set_mapping(struct security_class_mapping *wanted)
{
	struct mapping fresh = {.classes = 1}, old;
	const struct policy *policy;
	int result = 0;

	while (wanted && wanted[fresh.classes - 1].name)
		fresh.classes++;
	if (fresh.classes > 1) {
		fresh.entry = calloc(fresh.classes, sizeof(*fresh.entry));
		if (!fresh.entry)
			return -1;
	}
	policy = policy_enter();
	if (!policy || fill(policy, &fresh, wanted))
		result = -1;
	old = result ? fresh : map;
	if (!result)
		map = fresh;
	if (policy)
		policy_leave();
	free_mapping(&old);
	return result;
}
