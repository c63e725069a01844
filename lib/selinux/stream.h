/* SPDX-License-Identifier: MIT */
/* Reads the elements of a built policy's model: numbers of 4 bytes, texts, sets, lists. */
#ifndef TOLLGATE_SELINUX_STREAM_H
#define TOLLGATE_SELINUX_STREAM_H

#include "built.h"

#include <stdint.h>
#include <string.h>

/* What is left to read. After a failure, everything that is read is 0 or empty. */
struct stream {
	struct bytes rest;
	int failed;
};

static inline struct bytes stream_bytes(struct stream *stream, uint64_t length)
{
	struct bytes taken = {stream->rest.at, length};

	if (stream->failed || length > stream->rest.length) {
		stream->failed = 1;
		return (struct bytes){0};
	}
	stream->rest.at += length;
	stream->rest.length -= length;
	return taken;
}

static inline uint32_t stream_number(struct stream *stream)
{
	struct bytes four = stream_bytes(stream, 4);
	uint32_t number = 0;

	if (four.at)
		memcpy(&number, four.at, 4);
	return number;
}

/* The count of a list whose elements have at least `least` bytes each. */
static inline uint32_t stream_count(struct stream *stream, size_t least)
{
	uint32_t count = stream_number(stream);

	if (count > stream->rest.length / least)
		stream->failed = 1;
	return stream->failed ? 0 : count;
}

static inline struct bytes stream_text(struct stream *stream)
{
	return stream_bytes(stream, stream_number(stream));
}

static inline void stream_skip_set(struct stream *stream)
{
	stream_bytes(stream, stream_number(stream) * (uint64_t)8);
}

#endif
