/* SPDX-License-Identifier: MIT */
/* Lines of a file_contexts, compiled. */
#ifndef TOLLGATE_SELINUX_FILE_CONTEXTS_H
#define TOLLGATE_SELINUX_FILE_CONTEXTS_H

#include <stddef.h>
#include <sys/types.h>

struct file_contexts;

/* Reads `text`, which is copied. NULL with errno: EINVAL, a line is wrong, which the log says. */
struct file_contexts *file_contexts_read(const char *text, size_t length, const char *from);
void file_contexts_free(struct file_contexts *all);

/* The context of a path and a kind of file (0: any), as the last line that matches says, and how
 * many bytes of the path that line spells out. NULL with ENOENT if none does, or that line says
 * <<none>>. */
const char *file_contexts_find(struct file_contexts *all, const char *path, mode_t mode,
			       size_t *spelt);
/* Whether a line may match something below the path. */
int file_contexts_reach(struct file_contexts *all, const char *path);

#endif
