/* SPDX-License-Identifier: MIT */
/* The built policy in force, as the daemon keeps it (crates/policy/src/built.rs), mapped read-only.
 * All processes share its memory. */
#ifndef TOLLGATE_SELINUX_BUILT_H
#define TOLLGATE_SELINUX_BUILT_H

#include "tables.h"

#include <stddef.h>
#include <sys/types.h>

struct bytes {
	const unsigned char *at;
	size_t length;
};

struct built {
	void *memory;
	size_t reserved; /* bytes of address space */
	struct bytes model, levels, file_contexts;
	const struct tg_tables *tables;
	dev_t device;
	ino_t inode;
};

/* Maps the policy of a generation. Returns -1 with errno: ENOENT, there is none; ENOTSUP, it is of
 * another version than this library. */
int built_open(struct built *built, unsigned int generation);
void built_close(struct built *built);

#endif
