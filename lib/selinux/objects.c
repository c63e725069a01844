/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "objects.h"

#include "callbacks.h"

#include <errno.h>
#include <fnmatch.h>
#include <selinux/label.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	struct line *next;
	int type;
	char *pattern, *context;
};

struct objects {
	unsigned int backend;
	struct line *first;
};

static const struct {
	unsigned int backend;
	const char *word;
	int type;
} kinds[] = {
	{SELABEL_CTX_X, "property", SELABEL_X_PROP},
	{SELABEL_CTX_X, "extension", SELABEL_X_EXT},
	{SELABEL_CTX_X, "client", SELABEL_X_CLIENT},
	{SELABEL_CTX_X, "event", SELABEL_X_EVENT},
	{SELABEL_CTX_X, "selection", SELABEL_X_SELN},
	{SELABEL_CTX_X, "poly_property", SELABEL_X_POLYPROP},
	{SELABEL_CTX_X, "poly_selection", SELABEL_X_POLYSELN},
	{SELABEL_CTX_DB, "db_database", SELABEL_DB_DATABASE},
	{SELABEL_CTX_DB, "db_schema", SELABEL_DB_SCHEMA},
	{SELABEL_CTX_DB, "db_table", SELABEL_DB_TABLE},
	{SELABEL_CTX_DB, "db_column", SELABEL_DB_COLUMN},
	{SELABEL_CTX_DB, "db_sequence", SELABEL_DB_SEQUENCE},
	{SELABEL_CTX_DB, "db_view", SELABEL_DB_VIEW},
	{SELABEL_CTX_DB, "db_procedure", SELABEL_DB_PROCEDURE},
	{SELABEL_CTX_DB, "db_blob", SELABEL_DB_BLOB},
	{SELABEL_CTX_DB, "db_tuple", SELABEL_DB_TUPLE},
	{SELABEL_CTX_DB, "db_language", SELABEL_DB_LANGUAGE},
	{SELABEL_CTX_DB, "db_exception", SELABEL_DB_EXCEPTION},
	{SELABEL_CTX_DB, "db_datatype", SELABEL_DB_DATATYPE},
};

static int type_of(unsigned int backend, const char *word)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i].backend == backend && !strcmp(kinds[i].word, word))
			return kinds[i].type;
	}
	return -1;
}

/* Reads `KIND PATTERN CONTEXT`; a medium's line has no kind. */
static int read_line(struct objects *all, char *text, struct line ***last)
{
	char *rest, *word = strtok_r(text, " \t\n", &rest), *pattern = word, *context;
	struct line *line;
	int type = 0;

	if (!word || *word == '#')
		return 0;
	if (all->backend != SELABEL_CTX_MEDIA) {
		type = type_of(all->backend, word);
		pattern = strtok_r(NULL, " \t\n", &rest);
	}
	context = strtok_r(NULL, " \t\n", &rest);
	errno = EINVAL;
	if (type < 0 || !pattern || !context)
		return -1;
	line = calloc(1, sizeof(*line));
	if (!line)
		return -1;
	line->type = type;
	line->pattern = strdup(pattern);
	line->context = strdup(context);
	**last = line;
	*last = &line->next;
	return line->pattern && line->context ? 0 : -1;
}

struct objects *objects_read(unsigned int backend, const char *path)
{
	struct objects *all = calloc(1, sizeof(*all));
	struct line **last = all ? &all->first : NULL;
	FILE *file = all ? fopen(path, "re") : NULL;
	char *text = NULL;
	unsigned int number = 0;
	int failed = !file;
	size_t room = 0;

	if (all)
		all->backend = backend;
	while (!failed && getline(&text, &room, file) > 0) {
		number++;
		failed = read_line(all, text, &last);
		if (failed && errno == EINVAL)
			call_log(SELINUX_ERROR, "%s: line %u is not KIND PATTERN CONTEXT\n", path,
				 number);
	}
	free(text);
	if (file)
		fclose(file);
	if (failed && all) {
		objects_free(all);
		all = NULL;
	}
	return all;
}

void objects_free(struct objects *all)
{
	int number = errno;

	while (all->first) {
		struct line *line = all->first;

		all->first = line->next;
		free(line->pattern);
		free(line->context);
		free(line);
	}
	free(all);
	errno = number;
}

const char *objects_find(const struct objects *all, const char *name, int type)
{
	for (const struct line *line = all->first; line; line = line->next) {
		if ((all->backend == SELABEL_CTX_MEDIA || line->type == type) &&
		    !fnmatch(line->pattern, name, 0))
			return line->context;
	}
	errno = ENOENT;
	return NULL;
}
