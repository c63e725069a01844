/* SPDX-License-Identifier: MIT */
/* The fields of a context (selinux/context.h). */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <selinux/context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USER, ROLE, TYPE, RANGE, FIELDS };

struct fields {
	char *field[FIELDS];
	char *text; /* the last that context_str() returned */
};

/* A range may have colons. */
static int is_field(const char *text, int field)
{
	for (; *text; text++) {
		if (isspace((unsigned char)*text) || (*text == ':' && field != RANGE))
			return 0;
	}
	return 1;
}

static struct fields *fields_of(context_t context)
{
	return context->ptr;
}

static int set(context_t context, int field, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && (!copy || !is_field(text, field))) {
		errno = copy ? EINVAL : ENOMEM;
		free(copy);
		return -1;
	}
	free(fields_of(context)->field[field]);
	fields_of(context)->field[field] = copy;
	return 0;
}

/* Takes `text` apart in place. */
static int split(context_t context, char *text)
{
	for (int field = 0; field < FIELDS; field++) {
		char *part = field == RANGE ? text : strsep(&text, ":");

		if (!part && field < RANGE) {
			errno = EINVAL;
			return -1;
		}
		if (set(context, field, part))
			return -1;
	}
	return 0;
}

context_t context_new(const char *text)
{
	context_t context = calloc(1, sizeof(*context));
	char *copy = strdup(text);

	if (context)
		context->ptr = calloc(1, sizeof(struct fields));
	if (!context || !context->ptr || !copy || split(context, copy)) {
		context_free(context);
		context = NULL;
	}
	free(copy);
	return context;
}

void context_free(context_t context)
{
	if (!context)
		return;
	for (int field = 0; context->ptr && field < FIELDS; field++)
		free(fields_of(context)->field[field]);
	if (context->ptr)
		free(fields_of(context)->text);
	free(context->ptr);
	free(context);
}

char *context_str(context_t context)
{
	struct fields *fields = fields_of(context);
	const char *range = fields->field[RANGE];

	free(fields->text);
	if (asprintf(&fields->text, "%s:%s:%s%s%s", fields->field[USER], fields->field[ROLE],
		     fields->field[TYPE], range ? ":" : "", range ? range : "") < 0)
		fields->text = NULL;
	return fields->text;
}

#define FIELD(name, number)                                                                        \
	const char *context_##name##_get(context_t context)                                        \
	{                                                                                          \
		return fields_of(context)->field[number];                                          \
	}                                                                                          \
	int context_##name##_set(context_t context, const char *text)                              \
	{                                                                                          \
		return set(context, number, text);                                                 \
	}

FIELD(user, USER)
FIELD(role, ROLE)
FIELD(type, TYPE)
FIELD(range, RANGE)
