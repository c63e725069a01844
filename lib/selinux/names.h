/* SPDX-License-Identifier: MIT */
/* The names of a policy and their numbers, read from a built policy's model
 * (crates/policy/src/dump.rs). The texts stay where the model is. */
#ifndef TOLLGATE_SELINUX_NAMES_H
#define TOLLGATE_SELINUX_NAMES_H

#include "built.h"

#include <stdint.h>

enum kind { USER, ROLE, TYPE, CLASS, SENSITIVITY, CATEGORY, BOOLEAN, KINDS };

#define MOST_PERMISSIONS 32

struct permissions {
	unsigned int count;
	struct bytes name[MOST_PERMISSIONS]; /* by bit */
};

/* The names of one kind by number. Categories and booleans start at 0, the others at 1. */
struct list {
	uint32_t count; /* one more than the greatest number */
	struct bytes *name;
};

struct place {
	struct bytes name;
	uint32_t kind, number;
};

struct names {
	unsigned int version; /* of the policy's format */
	int mls, deny_unknown, reject_unknown;
	struct list list[KINDS];
	struct permissions *permissions; /* by class */
	unsigned char *value;		 /* of each boolean */
	/* All names and aliases, open addressing; a place without a name is free. */
	struct place *place;
	uint32_t mask, used;
};

/* Returns -1 with errno: ENOTSUP, the model is damaged or of another version. */
int names_read(struct names *names, struct bytes model);
void names_free(struct names *names);

/* The number of a name; -1: the policy does not have it. */
long names_find(const struct names *names, enum kind kind, const char *text, size_t length);
/* The name of a number; without text if there is none. */
struct bytes names_get(const struct names *names, enum kind kind, uint32_t number);

#endif
