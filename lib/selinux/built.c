/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "built.h"

#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "TGPOLICY"
#define OLDEST 1
#define NEWEST 2
#define HEADER 16
#define ENTRY 20
#define MOST_SECTIONS 16

enum section { MODEL = 2, TABLES, LEVELS, LINES, FILE_CONTEXTS };

static uint64_t number(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes); /* little endian, as the machines are that Tollgate runs on */
	return value;
}

/* Finds the sections that are needed in the file's table of (section, offset, length). */
static int find_sections(struct built *built, struct bytes *tables, size_t size)
{
	const unsigned char *file = built->memory;
	uint64_t version = number(file + 8, 4), count = number(file + 12, 4);

	if (memcmp(file, MAGIC, 8) || version < OLDEST || version > NEWEST ||
	    count > MOST_SECTIONS || HEADER + count * ENTRY > size)
		return -1;
	for (uint64_t i = 0; i < count; i++) {
		const unsigned char *entry = file + HEADER + i * ENTRY;
		uint64_t at = number(entry + 4, 8), length = number(entry + 12, 8);
		struct bytes part = {file + at, length};

		if (at > size || length > size - at)
			return -1;
		switch (number(entry, 4)) {
		case MODEL:
			built->model = part;
			break;
		case TABLES:
			*tables = part;
			break;
		case LEVELS:
			built->levels = part;
			break;
		case FILE_CONTEXTS:
			built->file_contexts = part;
			break;
		}
	}
	return 0;
}

/* The evaluator's accesses are masked to TG_CAPACITY, so that many bytes behind the beginning of
 * the tables can be read. The tables need not be aligned in the file: the machines that Tollgate
 * runs on read any address. */
static int read_file(struct built *built, size_t size)
{
	struct bytes tables = {0};

	if (size < HEADER || find_sections(built, &tables, size) || !built->model.at ||
	    tables.length < sizeof(struct tg_header) || tables.length > TG_CAPACITY)
		return -1;
	built->tables = (const struct tg_tables *)tables.at;
	const struct tg_header *header = (const struct tg_header *)tables.at;

	return header->magic == TG_MAGIC && header->version == TG_VERSION &&
			       header->size == tables.length
		       ? 0
		       : -1;
}

static int map(struct built *built, int fd)
{
	struct stat found;

	if (fstat(fd, &found))
		return -1;
	built->device = found.st_dev;
	built->inode = found.st_ino;
	built->reserved = (size_t)found.st_size + TG_CAPACITY;
	built->memory = mmap(NULL, built->reserved, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (built->memory == MAP_FAILED)
		return -1;
	if (found.st_size && mmap(built->memory, found.st_size, PROT_READ, MAP_SHARED | MAP_FIXED,
				  fd, 0) == MAP_FAILED)
		goto failed;
	if (!read_file(built, found.st_size))
		return 0;
	errno = ENOTSUP;
failed:
	built_close(built);
	return -1;
}

int built_open(struct built *built, unsigned int generation)
{
	char path[sizeof(TG_GENERATION) + 16];
	int fd, result, kept;

	*built = (struct built){0};
	snprintf(path, sizeof(path), TG_GENERATION, generation);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	result = map(built, fd);
	kept = errno;
	close(fd);
	errno = kept;
	return result;
}

void built_close(struct built *built)
{
	int kept = errno;

	if (built->memory)
		munmap(built->memory, built->reserved);
	*built = (struct built){0};
	errno = kept;
}
