/* SPDX-License-Identifier: MIT */
#include "names.h"

#include "stream.h"

#include <errno.h>
#include <stdlib.h>

#define MAGIC 0x444d4754u /* "TGMD" */
#define VERSION 1
#define IN_SET 5 /* a term of a constraint with two sets behind it */
#define ATTRIBUTE 1
#define ALLOW_UNKNOWN 4
#define REJECT_UNKNOWN 2

static uint32_t hash(enum kind kind, const void *text, size_t length)
{
	const unsigned char *byte = text;
	uint32_t value = 2166136261u ^ kind;

	for (size_t i = 0; i < length; i++)
		value = (value ^ byte[i]) * 16777619u;
	return value;
}

static int is(const struct place *place, enum kind kind, const void *text, size_t length)
{
	return place->kind == kind && place->name.length == length &&
	       !memcmp(place->name.at, text, length);
}

static struct place *find_place(const struct names *names, enum kind kind, struct bytes name)
{
	uint32_t at = hash(kind, name.at, name.length);

	while (names->place[at & names->mask].name.length &&
	       !is(&names->place[at & names->mask], kind, name.at, name.length))
		at++;
	return &names->place[at & names->mask];
}

/* Keeps at least half of the places free. */
static int grow(struct names *names)
{
	struct names larger = {.mask = names->mask * 2 + 1};

	if (names->used <= names->mask / 2)
		return 0;
	larger.place = calloc((size_t)larger.mask + 1, sizeof(*larger.place));
	if (!larger.place)
		return -1;
	for (uint32_t i = 0; i <= names->mask; i++) {
		const struct place *old = &names->place[i];

		if (old->name.length)
			*find_place(&larger, old->kind, old->name) = *old;
	}
	free(names->place);
	names->place = larger.place;
	names->mask = larger.mask;
	return 0;
}

static int add(struct names *names, enum kind kind, struct bytes name, uint32_t number)
{
	struct place *place;

	if (!name.length)
		return 0;
	if (grow(names))
		return -1;
	place = find_place(names, kind, name);
	names->used += !place->name.length;
	*place = (struct place){name, kind, number};
	return 0;
}

long names_find(const struct names *names, enum kind kind, const char *text, size_t length)
{
	struct bytes name = {(const unsigned char *)text, length};
	const struct place *place = find_place(names, kind, name);

	return length && place->name.length ? (long)place->number : -1;
}

struct bytes names_get(const struct names *names, enum kind kind, uint32_t number)
{
	const struct list *list = &names->list[kind];

	return number < list->count ? list->name[number] : (struct bytes){0};
}

/* Makes room for the list that is read next, of numbers from `first` on. Returns its count. */
static uint32_t begin(struct names *names, struct stream *stream, enum kind kind, uint32_t first)
{
	uint32_t count = stream_count(stream, 8);
	struct list *list = &names->list[kind];

	list->name = calloc((size_t)count + first + 1, sizeof(*list->name));
	if (!list->name)
		stream->failed = 1;
	list->count = list->name ? count + first : 0;
	return stream->failed ? 0 : count;
}

static void skip_constraints(struct stream *stream)
{
	for (uint32_t left = stream_count(stream, 8); left; left--) {
		stream_number(stream);
		for (uint32_t terms = stream_count(stream, 12); terms; terms--) {
			uint32_t kind = stream_number(stream);

			stream_bytes(stream, 8);
			if (kind != IN_SET)
				continue;
			stream_skip_set(stream);
			stream_skip_set(stream);
		}
	}
}

static void read_classes(struct names *names, struct stream *stream)
{
	uint32_t count = begin(names, stream, CLASS, 1);

	names->permissions = calloc((size_t)count + 1, sizeof(*names->permissions));
	if (!names->permissions)
		stream->failed = 1;
	for (uint32_t class = 1; class <= count && !stream->failed; class ++) {
		struct permissions *permissions = &names->permissions[class];

		names->list[CLASS].name[class] = stream_text(stream);
		permissions->count = stream_count(stream, 4);
		if (permissions->count > MOST_PERMISSIONS) {
			permissions->count = 0;
			stream->failed = 1;
		}
		for (uint32_t bit = 0; bit < permissions->count; bit++)
			permissions->name[bit] = stream_text(stream);
		stream_bytes(stream, 16); /* defaults */
		skip_constraints(stream);
		skip_constraints(stream);
	}
}

static void read_types(struct names *names, struct stream *stream)
{
	uint32_t count = begin(names, stream, TYPE, 1);

	for (uint32_t type = 1; type <= count; type++) {
		struct bytes name = stream_text(stream);
		uint32_t flags = stream_number(stream);

		/* Contexts have no attributes. */
		if (!(flags & ATTRIBUTE))
			names->list[TYPE].name[type] = name;
		stream_number(stream); /* bounds */
		stream_skip_set(stream);
	}
	for (uint32_t left = stream_count(stream, 8); left; left--) {
		struct bytes alias = stream_text(stream);

		stream->failed |= add(names, TYPE, alias, stream_number(stream)) != 0;
	}
}

static void skip_level(struct stream *stream)
{
	stream_number(stream);
	stream_skip_set(stream);
}

static void read_roles_and_users(struct names *names, struct stream *stream)
{
	uint32_t count = begin(names, stream, ROLE, 1);

	for (uint32_t role = 1; role <= count; role++) {
		names->list[ROLE].name[role] = stream_text(stream);
		stream_skip_set(stream);
		stream_skip_set(stream);
	}
	count = begin(names, stream, USER, 1);
	for (uint32_t user = 1; user <= count; user++) {
		names->list[USER].name[user] = stream_text(stream);
		stream_skip_set(stream);
		for (int levels = 0; levels < 3; levels++)
			skip_level(stream);
	}
}

static void read_aliases(struct names *names, struct stream *stream, enum kind kind,
			 uint32_t number)
{
	for (uint32_t left = stream_count(stream, 4); left; left--)
		stream->failed |= add(names, kind, stream_text(stream), number) != 0;
}

static void read_levels(struct names *names, struct stream *stream)
{
	uint32_t count = begin(names, stream, SENSITIVITY, 1);

	for (uint32_t number = 1; number <= count; number++) {
		names->list[SENSITIVITY].name[number] = stream_text(stream);
		read_aliases(names, stream, SENSITIVITY, number);
		stream_skip_set(stream);
	}
	count = begin(names, stream, CATEGORY, 0);
	for (uint32_t number = 0; number < count; number++) {
		names->list[CATEGORY].name[number] = stream_text(stream);
		read_aliases(names, stream, CATEGORY, number);
	}
}

static void read_booleans(struct names *names, struct stream *stream)
{
	uint32_t count = begin(names, stream, BOOLEAN, 0);

	names->value = calloc((size_t)count + 1, 1);
	if (!names->value)
		stream->failed = 1;
	for (uint32_t number = 0; number < count && !stream->failed; number++) {
		names->list[BOOLEAN].name[number] = stream_text(stream);
		names->value[number] = stream_number(stream) & 1;
	}
}

static void read_head(struct names *names, struct stream *stream)
{
	uint32_t unknown;

	if (stream_number(stream) != MAGIC || stream_number(stream) != VERSION)
		stream->failed = 1;
	names->version = stream_number(stream);
	names->mls = stream_number(stream) == 1;
	unknown = stream_number(stream);
	names->deny_unknown = unknown != ALLOW_UNKNOWN;
	names->reject_unknown = unknown == REJECT_UNKNOWN;
	for (uint32_t left = stream_count(stream, 4); left; left--)
		stream_text(stream); /* policy capabilities */
	for (int kinds = 0; kinds < KINDS; kinds++)
		stream_number(stream); /* how many there are, which the lists say again */
}

int names_read(struct names *names, struct bytes model)
{
	struct stream stream = {.rest = model};

	*names = (struct names){.mask = 1023};
	names->place = calloc(1024, sizeof(*names->place));
	stream.failed = !names->place;
	read_head(names, &stream);
	read_classes(names, &stream);
	read_types(names, &stream);
	read_roles_and_users(names, &stream);
	read_levels(names, &stream);
	read_booleans(names, &stream);
	for (int kind = 0; kind < KINDS && !stream.failed; kind++) {
		for (uint32_t number = 0; number < names->list[kind].count; number++)
			stream.failed |=
				add(names, kind, names->list[kind].name[number], number) != 0;
	}
	if (!stream.failed)
		return 0;
	names_free(names);
	errno = ENOTSUP;
	return -1;
}

void names_free(struct names *names)
{
	for (int kind = 0; kind < KINDS; kind++)
		free(names->list[kind].name);
	free(names->permissions);
	free(names->value);
	free(names->place);
	*names = (struct names){0};
}
