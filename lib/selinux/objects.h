/* SPDX-License-Identifier: MIT */
/* Lines `KIND PATTERN CONTEXT` of objects that are not files: of databases, of X, media. */
#ifndef TOLLGATE_SELINUX_OBJECTS_H
#define TOLLGATE_SELINUX_OBJECTS_H

struct objects;

/* Reads the lines for a backend of selabel from a file. NULL with errno. */
struct objects *objects_read(unsigned int backend, const char *path);
void objects_free(struct objects *all);

/* The context of the first line that fits; NULL with ENOENT. */
const char *objects_find(const struct objects *all, const char *name, int type);

#endif
