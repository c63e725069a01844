/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "file_contexts.h"

#include "callbacks.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SPECIAL ".^$?*+|[({" /* what makes an expression more than a path */
#define NONE "<<none>>"

struct spec {
	const char *expression, *context;
	size_t literal;	   /* so many bytes at its beginning stand for themselves */
	mode_t mode;	   /* 0: any */
	int is_expression; /* and not a path, of which characters may be escaped */
	int is_plain;	   /* nothing in it is special or escaped */
	pcre2_code *code;  /* compiled when it is first compared */
};

struct file_contexts {
	pthread_mutex_t lock;
	char *text;
	struct spec *spec;
	size_t count, room;
};

static int kind(const char *word, mode_t *mode)
{
	static const struct {
		char letter;
		mode_t mode;
	} kinds[] = {{'-', S_IFREG}, {'d', S_IFDIR}, {'c', S_IFCHR}, {'b', S_IFBLK},
		     {'p', S_IFIFO}, {'l', S_IFLNK}, {'s', S_IFSOCK}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (word[0] == '-' && word[1] == kinds[i].letter && !word[2]) {
			*mode = kinds[i].mode;
			return 0;
		}
	}
	return -1;
}

static int has_special(const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		else if (strchr(SPECIAL, *text))
			return 1;
	}
	return 0;
}

/* Whether an alternative of the whole expression begins somewhere in it. */
static int has_alternative(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		else if (*text == '(')
			depth++;
		else if (*text == ')')
			depth--;
		else if (*text == '|' && depth <= 0)
			return 1;
	}
	return 0;
}

/* How many bytes at the beginning of an expression stand for themselves: a quantifier takes away
 * the one before it. */
static size_t literal(const char *expression)
{
	size_t length = strcspn(expression, SPECIAL "\\");

	if (has_alternative(expression))
		return 0;
	return length && expression[length] && strchr("?*+{", expression[length]) ? length - 1
										  : length;
}

static int add(struct file_contexts *all, struct spec spec)
{
	if (all->count == all->room) {
		size_t room = all->room ? all->room * 2 : 1024;
		struct spec *fresh = realloc(all->spec, room * sizeof(*fresh));

		if (!fresh)
			return -1;
		all->spec = fresh;
		all->room = room;
	}
	spec.literal = literal(spec.expression);
	spec.is_expression = has_special(spec.expression);
	spec.is_plain = !spec.is_expression && !strchr(spec.expression, '\\');
	all->spec[all->count++] = spec;
	return 0;
}

/* Reads `EXPRESSION [KIND] CONTEXT`. */
static int read_line(struct file_contexts *all, char *line)
{
	char *rest, *words[4] = {0};
	struct spec spec = {0};
	int count = 0;

	line[strcspn(line, "\n")] = 0;
	for (char *word = strtok_r(line, " \t", &rest); word && count < 4;
	     word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	if (!count || *words[0] == '#')
		return 0;
	spec.expression = words[0];
	spec.context = words[count - 1];
	errno = EINVAL;
	if (count < 2 || count > 3 || (count == 3 && kind(words[1], &spec.mode)))
		return -1;
	return add(all, spec);
}

/* Those that are no expressions count before all others, so they are compared first: from the end.
 * The order is kept otherwise. */
static int order(struct file_contexts *all)
{
	struct spec *sorted = calloc(all->count + 1, sizeof(*sorted));
	size_t at = 0;

	if (!sorted)
		return -1;
	for (int expressions = 1; expressions >= 0; expressions--) {
		for (size_t i = 0; i < all->count; i++) {
			if (all->spec[i].is_expression == expressions)
				sorted[at++] = all->spec[i];
		}
	}
	free(all->spec);
	all->spec = sorted;
	return 0;
}

struct file_contexts *file_contexts_read(const char *text, size_t length, const char *from)
{
	struct file_contexts *all = calloc(1, sizeof(*all));
	unsigned int number = 0;
	char *line, *rest;
	int failed = 0;

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	all->text = rest = strndup(text, length);
	while (rest && !failed && (line = strsep(&rest, "\n"))) {
		number++;
		failed = read_line(all, line);
	}
	if (failed && errno == EINVAL)
		call_log(SELINUX_ERROR, "%s: line %u is not EXPRESSION [KIND] CONTEXT\n", from,
			 number);
	if (all->text && !failed && !order(all))
		return all;
	file_contexts_free(all);
	return NULL;
}

void file_contexts_free(struct file_contexts *all)
{
	int number = errno;

	for (size_t i = 0; i < all->count; i++)
		pcre2_code_free(all->spec[i].code);
	free(all->spec);
	free(all->text);
	pthread_mutex_destroy(&all->lock);
	free(all);
	errno = number;
}

static int compile(struct spec *spec)
{
	char *anchored;
	PCRE2_SIZE at;
	int error;

	if (asprintf(&anchored, "^(?:%s)$", spec->expression) < 0)
		return -1;
	spec->code = pcre2_compile((PCRE2_SPTR)anchored, PCRE2_ZERO_TERMINATED, PCRE2_DOTALL,
				   &error, &at, NULL);
	if (!spec->code)
		call_log(SELINUX_ERROR, "%s is not a regular expression (byte %zu)\n",
			 spec->expression, at);
	free(anchored);
	return spec->code ? 0 : -1;
}

/* 1: the whole path matches; 0: it does not, though it may be the beginning of what does if
 * `partial` was set; -1: it cannot be compared. */
static int match(struct spec *spec, const char *path, int *partial)
{
	pcre2_match_data *data;
	int result;

	if (!spec->code && compile(spec))
		return -1;
	data = pcre2_match_data_create(1, NULL);
	if (!data)
		return -1;
	result = pcre2_match(spec->code, (PCRE2_SPTR)path, strlen(path), 0,
			     partial ? PCRE2_PARTIAL_SOFT : 0, data, NULL);
	pcre2_match_data_free(data);
	if (partial)
		*partial = result == PCRE2_ERROR_PARTIAL;
	return result >= 0; /* 0: it has groups, which are of no interest */
}

static int fits(struct spec *spec, const char *path)
{
	if (spec->is_plain)
		return !strcmp(spec->expression, path);
	return !strncmp(spec->expression, path, spec->literal) && match(spec, path, NULL) == 1;
}

const char *file_contexts_find(struct file_contexts *all, const char *path, mode_t mode,
			       size_t *spelt)
{
	const char *context = NULL;

	*spelt = 0;
	mode &= S_IFMT;
	pthread_mutex_lock(&all->lock);
	for (size_t i = all->count; i-- > 0;) {
		struct spec *spec = &all->spec[i];

		if ((!mode || !spec->mode || mode == spec->mode) && fits(spec, path)) {
			*spelt = spec->is_expression ? spec->literal : strlen(path);
			context = strcmp(spec->context, NONE) ? spec->context : NULL;
			break;
		}
	}
	pthread_mutex_unlock(&all->lock);
	if (!context)
		errno = ENOENT;
	return context;
}

int file_contexts_reach(struct file_contexts *all, const char *path)
{
	int partial = 0, found = 0;

	pthread_mutex_lock(&all->lock);
	for (size_t i = all->count; i-- > 0 && !found;) {
		struct spec *spec = &all->spec[i];

		if (spec->is_plain)
			found = !strncmp(spec->expression, path, strlen(path));
		else
			found = match(spec, path, &partial) == 1 || partial;
	}
	pthread_mutex_unlock(&all->lock);
	return found;
}
