// SPDX-License-Identifier: MIT
/*
 * A deliberately weak setuid program: `forms LOCATION TARGET COPY` has a record in that place of
 * memory, copies what it is sent to the record's buffer without looking at the length, and goes on
 * by what lies behind the buffer.
 */
#include "forms.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static struct record in_bss, in_data = {.buffer = "data"};
static enum target target;
static enum copy copy;
static char message[2 * ROOM], kept[STORED_LENGTH];

static void done(const char *text)
{
	(void)text;
}

static int exactly(void *to, size_t length)
{
	for (size_t got = 0; got < length;) {
		long more = read(0, (char *)to + got, length - got);

		if (more <= 0)
			return 0;
		got += more;
	}
	return 1;
}

/* Messages follow their lengths. */
static NOINLINE void receive(struct record *record)
{
	unsigned length;

	while (exactly(&length, sizeof length) && length && length < sizeof message) {
		if (copy == READ) {
			exactly(record->buffer, length);
			continue;
		}
		exactly(message, length);
		message[length] = 0;
		if (copy == MEMCPY)
			memcpy(record->buffer, message, length);
		else if (copy == STRCPY)
			strcpy(record->buffer, message);
		else
			sprintf(record->buffer, "%s", message);
	}
}

/* Says where it is. Without `direct`, what is behind the buffer is a pointer to what is returned to
 * or linked with. */
static NOINLINE void use(struct record *record, char *frame, int direct)
{
	uintptr_t page = (uintptr_t)record & -4096UL;
	int pointer = target == LINKAGE || ((target == RETURN || target == BASE) && !direct);

	/* In the year 2000, all data could be executed. The stack still can, if the program says
	 * so. */
	if (!direct)
		mprotect((void *)page, sizeof *record + 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (target == FUNCTION)
		record->next.call = done;
	else if (target == STRUCT)
		record->next.operations.call = done;
	else if (pointer)
		record->next.where = kept;
	printf("%p %p %p\n", (void *)record, (void *)stdout, (void *)frame);
	fflush(stdout);
	receive(record);
	if (pointer)
		memcpy(record->next.where, record->buffer + STORED,
		       target == RETURN ? STORED_LENGTH : 8);
	if (target == FUNCTION)
		record->next.call(record->buffer);
	else if (target == STRUCT)
		record->next.operations.call(record->buffer);
	else if (target == JUMP)
		__builtin_longjmp((void **)record->next.jump, 1);
	else if (target == LINKAGE)
		strdup(record->buffer);
}

static NOINLINE void on_stack(void)
{
	struct record record;

	if (target != JUMP || !__builtin_setjmp((void **)record.next.jump))
		use(&record, __builtin_frame_address(0), 1);
}

static NOINLINE void elsewhere(struct record *record)
{
	if (target != JUMP || !__builtin_setjmp((void **)record->next.jump))
		use(record, __builtin_frame_address(0), 0);
}

/* Its own frame is what a wrong base pointer harms. */
static NOINLINE void serve(enum location location)
{
	if (location == STACK)
		on_stack();
	else if (location == HEAP)
		elsewhere(malloc(sizeof(struct record) + 8192));
	else
		elsewhere(location == BSS ? &in_bss : &in_data);
}

int main(int argc, char **argv)
{
	if (argc < 4 || setgid(0) || setuid(0))
		return 2;
	target = atoi(argv[2]);
	copy = atoi(argv[3]);
	serve(atoi(argv[1]));
	return 0;
}
