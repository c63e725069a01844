/* SPDX-License-Identifier: MIT */
/* Contexts as text: string_to_context_struct, mls_context_to_sid and mls_sid_to_context of the
 * kernel. */
#define _GNU_SOURCE
#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the text up to one of `ends`, or all, from *rest. */
static struct bytes take(const char **rest, const char *ends)
{
	size_t length = strcspn(*rest, ends);
	struct bytes part = {(const unsigned char *)*rest, length};

	*rest += length;
	return part;
}

static long find(const struct policy *policy, enum kind kind, struct bytes name)
{
	return names_find(&policy->names, kind, (const char *)name.at, name.length);
}

/* Reads `c1` or `c1.c3`. The kernel also refuses a range of a single category. */
static int read_categories(const struct policy *policy, struct bytes item, struct tg_level *level)
{
	const unsigned char *dot = memchr(item.at, '.', item.length);
	struct bytes low = {item.at, dot ? (size_t)(dot - item.at) : item.length};
	long first = find(policy, CATEGORY, low), last = first;

	if (dot) {
		struct bytes high = {dot + 1, item.length - low.length - 1};

		last = find(policy, CATEGORY, high);
		if (last <= first)
			return -1;
	}
	if (first < 0 || last >= (long)TG_CATEGORIES)
		return -1;
	for (long number = first; number <= last; number++)
		level->categories[number / 64] |= 1ull << number % 64;
	return 0;
}

static int read_level(const struct policy *policy, const char **rest, struct tg_level *level)
{
	long sensitivity = find(policy, SENSITIVITY, take(rest, ":-"));

	if (sensitivity < 0)
		return -1;
	level->sensitivity = sensitivity;
	for (int first = 1; **rest == (first ? ':' : ','); first = 0) {
		++*rest;
		if (read_categories(policy, take(rest, ",-"), level))
			return -1;
	}
	return 0;
}

static int read_range(const struct policy *policy, const char *text, struct tg_level level[2])
{
	if (read_level(policy, &text, &level[0]))
		return -1;
	if (!*text) {
		level[1] = level[0];
		return 0;
	}
	text++;
	return read_level(policy, &text, &level[1]) || *text ? -1 : 0;
}

int context_read(const struct policy *policy, const char *text, struct context *out)
{
	long part[3] = {-1, -1, -1};
	static const enum kind kinds[] = {USER, ROLE, TYPE};
	int has_range;

	*out = (struct context){0};
	for (int i = 0; text && i < 3; i++) {
		part[i] = find(policy, kinds[i], take(&text, ":"));
		if (i < 2 && *text++ != ':')
			goto invalid;
	}
	if (part[0] < 0 || part[1] < 0 || part[2] < 0)
		goto invalid;
	out->user = part[0];
	out->role = part[1];
	out->type = part[2];
	has_range = *text == ':';
	if (has_range != policy->names.mls ||
	    (has_range && read_range(policy, text + 1, out->level)) || !policy_valid(policy, out))
		goto invalid;
	return 0;
invalid:
	errno = EINVAL;
	return -1;
}

static void write_name(FILE *to, const struct policy *policy, enum kind kind, uint32_t number)
{
	struct bytes name = names_get(&policy->names, kind, number);

	fwrite(name.at, 1, name.length, to);
}

static int has(const struct tg_level *level, unsigned int number)
{
	return number < TG_CATEGORIES && level->categories[number / 64] >> number % 64 & 1;
}

/* Three or more consecutive categories are written c1.c3. */
static void write_level(FILE *to, const struct policy *policy, const struct tg_level *level)
{
	char separator = ':';

	write_name(to, policy, SENSITIVITY, level->sensitivity);
	for (unsigned int first = 0, last; first < TG_CATEGORIES; first = last + 1) {
		last = first;
		if (!has(level, first))
			continue;
		while (has(level, last + 1))
			last++;
		fputc(separator, to);
		separator = ',';
		write_name(to, policy, CATEGORY, first);
		if (last == first)
			continue;
		fputc(last == first + 1 ? ',' : '.', to);
		write_name(to, policy, CATEGORY, last);
	}
}

char *context_write(const struct policy *policy, const struct context *context)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	if (!to)
		return NULL;
	write_name(to, policy, USER, context->user);
	fputc(':', to);
	write_name(to, policy, ROLE, context->role);
	fputc(':', to);
	write_name(to, policy, TYPE, context->type);
	if (policy->names.mls) {
		fputc(':', to);
		write_level(to, policy, &context->level[0]);
		if (memcmp(&context->level[0], &context->level[1], sizeof(struct tg_level))) {
			fputc('-', to);
			write_level(to, policy, &context->level[1]);
		}
	}
	if (!fclose(to))
		return text;
	free(text);
	errno = ENOMEM;
	return NULL;
}
