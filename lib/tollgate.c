/* SPDX-License-Identifier: MIT */
/* A caller of Tollgate's daemon (docs/library.md has the protocol). A connection for each call: no
 * state, so nothing to protect between threads or over fork. */
#define _GNU_SOURCE
#include "tollgate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SOCKET "/run/tollgate/socket"
#define CONTEXTS "/run/tollgate/contexts"
#define TASKS "/sys/fs/bpf/tollgate/maps/tasks"
#define GREETING "tollgate 1 "
#define PATIENCE 120 /* seconds */
#define LINE 65536   /* bytes of a reply */
#define MACHINE 28   /* the SID of processes without a label */

/* enforcer.h has these. */
#define TG_PRCTL 0x54474154u
enum attribute { CURRENT = 1, EXEC, FSCREATE, KEYCREATE, SOCKCREATE };

static _Thread_local char error_text[512] = "no call has failed";

const char *tg_error(void)
{
	return error_text;
}

void tg_freecon(char *context)
{
	free(context);
}

__attribute__((format(printf, 2, 3))) static int fail(int number, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error_text, sizeof(error_text), format, arguments);
	va_end(arguments);
	errno = number;
	return -1;
}

static void close_quietly(int fd)
{
	int number = errno;

	close(fd);
	errno = number;
}

/* A line, which grows; `failed` once there was no memory for it. */
struct line {
	char *text;
	size_t length, room;
	int failed;
};

static void put(struct line *line, const char *bytes, size_t count)
{
	if (line->length + count + 1 > line->room) {
		size_t room = (line->length + count + 1) * 2;
		char *text = realloc(line->text, room);

		if (!text) {
			line->failed = 1;
			return;
		}
		line->text = text;
		line->room = room;
	}
	memcpy(line->text + line->length, bytes, count);
	line->length += count;
	line->text[line->length] = 0;
}

/* A word, with what is not graphic ASCII as % and two digits. */
static void put_word(struct line *line, const char *word)
{
	for (; *word; word++) {
		unsigned char byte = *word;
		char encoded[4];

		if (byte > ' ' && byte < 127 && byte != '%') {
			put(line, word, 1);
		} else {
			snprintf(encoded, sizeof(encoded), "%%%02x", byte);
			put(line, encoded, 3);
		}
	}
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes a word in its place; -1: it is none. */
static int decode(char *word)
{
	char *to = word;

	for (; *word; word++, to++) {
		*to = *word;
		if (*word != '%')
			continue;
		int high = digit(word[1]), low = high < 0 ? -1 : digit(word[2]);

		if (low < 0 || high + low == 0)
			return -1;
		*to = high << 4 | low;
		word += 2;
	}
	*to = 0;
	return 0;
}

static int connect_daemon(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	struct timeval patience = {.tv_sec = PATIENCE};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fail(errno, "cannot make a socket: %m");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		fail(errno, "no daemon answers on " SOCKET
			    " (%m): start it with `tollgate enforce POLICY`");
		close_quietly(fd);
		return -1;
	}
	return fd;
}

/* Sends all of a line, and `with` beside its first byte unless that is -1. */
static int send_line(int fd, const struct line *line, int with)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = line->text, .iov_len = line->length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (line->failed)
		return fail(ENOMEM, "no memory for a request");
	if (with >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &with, sizeof(int));
	}
	while (part.iov_len) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return fail(errno, "cannot send to the daemon: %m");
		part.iov_base = (char *)part.iov_base + sent;
		part.iov_len -= sent;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return 0;
}

/* The next line, without its newline. The daemon sends one at a time, and nothing after it. */
static int receive_line(int fd, struct line *line)
{
	char buffer[4096];

	line->length = 0;
	while (!line->length || line->text[line->length - 1] != '\n') {
		ssize_t count = recv(fd, buffer, sizeof(buffer), 0);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return fail(errno, "cannot receive from the daemon: %m");
		if (count == 0)
			return fail(ECONNRESET, "the daemon has closed the connection");
		put(line, buffer, count);
		if (line->failed || line->length > LINE)
			return fail(EMSGSIZE, "the daemon's answer is too long");
	}
	line->text[--line->length] = 0;
	return 0;
}

/* Takes the word of `ok WORD` out of an answer, or fails as `error ERRNO TEXT` says. */
static int understand(char *answer, char **word)
{
	char *text;
	long number;

	if (!strcmp(answer, "ok") || !strncmp(answer, "ok ", 3)) {
		*word = answer[2] ? answer + 3 : answer + 2;
		return decode(*word) ? fail(EPROTO, "the daemon's answer is garbled") : 0;
	}
	if (strncmp(answer, "error ", 6))
		return fail(EPROTO, "the daemon's answer is garbled");
	number = strtol(answer + 6, &text, 10);
	if (number < 1 || number > 4095 || *text != ' ' || decode(++text))
		return fail(EPROTO, "the daemon's answer is garbled");
	return fail(number, "%s", text);
}

/* Says hello to the greeting in `line`, and what `request` holds. */
static int greet(int fd, struct line *line, const struct line *request, int with)
{
	struct line hello = {0};
	char *word;
	int result;

	if (strncmp(line->text, GREETING, strlen(GREETING))) {
		if (understand(line->text, &word))
			return -1;
		return fail(EPROTO, "the daemon is of another version than this library");
	}
	put(&hello, "hello ", 6);
	put(&hello, line->text + strlen(GREETING), line->length - strlen(GREETING));
	put(&hello, "\n", 1);
	put(&hello, request->text, request->length);
	hello.failed |= request->failed;
	result = send_line(fd, &hello, with);
	free(hello.text);
	return result;
}

/* Asks for something, with a descriptor unless that is -1; *word is allocated, if it is wanted. */
static int ask(struct line *request, int with, char **word)
{
	struct line line = {0};
	char *answer = NULL;
	int fd, result = -1;

	put(request, "\n", 1);
	fd = connect_daemon();
	if (fd >= 0) {
		result = receive_line(fd, &line);
		if (!result && !request->failed)
			result = greet(fd, &line, request, with);
		else if (!result)
			result = fail(ENOMEM, "no memory for a request");
		if (!result)
			result = receive_line(fd, &line);
		if (!result)
			result = understand(line.text, &answer);
		close_quietly(fd);
	}
	if (!result && word) {
		*word = strdup(answer);
		if (!*word)
			result = fail(ENOMEM, "no memory for an answer");
	}
	free(line.text);
	free(request->text);
	return result;
}

/* A request of up to three words that are known, and one of the caller's. */
static struct line request(const char *words, const char *last)
{
	struct line line = {0};

	put(&line, words, strlen(words));
	if (last) {
		put(&line, " ", 1);
		put_word(&line, last);
	}
	return line;
}

/* What a SID stands for, as the daemon has written it down. */
static int text_of_sid(uint32_t wanted, char **context)
{
	FILE *file = fopen(CONTEXTS, "re");
	char *line = NULL, *text;
	size_t room = 0;
	int result = -1;

	if (!file)
		return fail(errno, "cannot read " CONTEXTS ": %m");
	while (result && getline(&line, &room, file) > 0) {
		if (strtoul(line, &text, 10) != wanted || *text != ' ')
			continue;
		text[strcspn(text, "\n")] = 0;
		*context = strdup(text + 1);
		result = *context ? 0 : fail(ENOMEM, "no memory for a context");
	}
	if (result)
		fail(ENOENT, "it is not known what SID %u stands for", wanted);
	free(line);
	fclose(file);
	return result;
}

/* The SID of a process, out of the kernel's map: without a daemon, for those who may read it. */
static int sid_of(int process, uint32_t *sid)
{
	union bpf_attr get = {.pathname = (uintptr_t)TASKS, .file_flags = BPF_F_RDONLY};
	union bpf_attr look = {0}, tell = {0};
	struct bpf_map_info info = {0};
	uint32_t value[256] = {0};
	int map = syscall(SYS_bpf, BPF_OBJ_GET, &get, sizeof(get)), result = -1;

	if (map < 0)
		return fail(errno,
			    "no daemon answers, start it with `tollgate enforce POLICY`; and " TASKS
			    " cannot be read: %m");
	tell.info.bpf_fd = map;
	tell.info.info = (uintptr_t)&info;
	tell.info.info_len = sizeof(info);
	look.map_fd = map;
	look.key = (uintptr_t)&process;
	look.value = (uintptr_t)value;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &tell, sizeof(tell)))
		fail(errno, "cannot look at " TASKS ": %m");
	else if (info.value_size > sizeof(value))
		fail(EPROTO, TASKS " is of another version than this library");
	else if (!syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &look, sizeof(look)) || errno == ENOENT)
		result = 0;
	else
		fail(errno, "cannot look a process up in " TASKS ": %m");
	*sid = value[0] ? value[0] : MACHINE;
	close_quietly(map);
	return result;
}

/* A context of the process of a pidfd, or with -1 of the one that asks. */
static int get_of(const char *words, int process, char **context)
{
	struct line line = request(words, NULL);
	int result = ask(&line, process, context);

	if (!result && !**context) {
		free(*context);
		*context = NULL;
	}
	return result;
}

/* A context of the calling thread. What asks is the process, which is its first thread; another one
 * has a pidfd since Linux 6.9 (PIDFD_THREAD). */
static int get(const char *words, char **context)
{
	pid_t thread = syscall(SYS_gettid);
	int own, result;

	if (thread == getpid())
		return get_of(words, -1, context);
	own = syscall(SYS_pidfd_open, thread, O_EXCL);
	if (own < 0)
		return fail(EOPNOTSUPP, "this kernel tells contexts of first threads only: %m");
	result = get_of(words, own, context);
	close_quietly(own);
	return result;
}

int tg_getpidcon(pid_t pid, char **context)
{
	int process = syscall(SYS_pidfd_open, pid, 0), result;
	uint32_t sid;

	if (process < 0)
		return fail(errno, "cannot open process %d: %m", (int)pid);
	result = get_of("get current", process, context);
	if (result && (errno == ENOENT || errno == ECONNREFUSED)) {
		result = sid_of(process, &sid);
		if (!result)
			result = text_of_sid(sid, context);
	}
	close_quietly(process);
	return result;
}

int tg_getcon(char **context)
{
	int result = get("get current", context);

	if (result && (errno == ENOENT || errno == ECONNREFUSED))
		return tg_getpidcon(getpid(), context);
	return result;
}

int tg_getprevcon(char **context)
{
	return get("get prev", context);
}

int tg_getexeccon(char **context)
{
	return get("get exec", context);
}

int tg_getfscreatecon(char **context)
{
	return get("get fscreate", context);
}

int tg_getkeycreatecon(char **context)
{
	return get("get keycreate", context);
}

int tg_getsockcreatecon(char **context)
{
	return get("get sockcreate", context);
}

/* Gives the calling thread a SID. A hook of the kernel's cannot say "done", which EALREADY stands
 * for; EAGAIN: somebody looked at the process, which could then have been one of several threads.
 */
static int give(enum attribute attribute, unsigned long sid)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int tries = 0; tries < 100; tries++) {
		if (!prctl(TG_PRCTL, (unsigned long)attribute, sid, 0ul, 0ul))
			break;
		if (errno == EALREADY)
			return 0;
		if (errno == EINVAL)
			break;
		if (errno != EAGAIN)
			return fail(errno, "the policy does not allow it: %m");
		nanosleep(&pause, NULL);
	}
	if (errno == EAGAIN)
		return fail(EPERM, "another process shares this one's memory");
	return fail(EOPNOTSUPP, "nothing is enforced here");
}

static int set(enum attribute attribute, const char *words, const char *context)
{
	unsigned long sid = 0;
	char *word, *end;

	if (context) {
		struct line line = request(words, context);

		if (ask(&line, -1, &word))
			return -1;
		sid = strtoul(word, &end, 10);
		free(word);
		if (!sid)
			return fail(EPROTO, "the daemon's answer is garbled");
	}
	return give(attribute, sid);
}

int tg_setcon(const char *context)
{
	if (!context)
		return fail(EINVAL, "no context");
	return set(CURRENT, "sid current", context);
}

int tg_setexeccon(const char *context)
{
	return set(EXEC, "sid exec", context);
}

int tg_setfscreatecon(const char *context)
{
	return set(FSCREATE, "sid fscreate", context);
}

int tg_setkeycreatecon(const char *context)
{
	return set(KEYCREATE, "sid keycreate", context);
}

int tg_setsockcreatecon(const char *context)
{
	return set(SOCKCREATE, "sid sockcreate", context);
}

int tg_fgetfilecon(int fd, char **context)
{
	struct line line = request("label get", NULL);

	return ask(&line, fd, context);
}

int tg_fsetfilecon(int fd, const char *context)
{
	struct line line = {0};

	if (!context)
		return fail(EINVAL, "no context");
	line = request("label set", context);
	return ask(&line, fd, NULL);
}

static int open_path(const char *path, int flags)
{
	int fd = open(path, O_PATH | O_CLOEXEC | flags);

	return fd < 0 ? fail(errno, "cannot open %s: %m", path) : fd;
}

static int get_at(const char *path, int flags, char **context)
{
	int fd = open_path(path, flags), result;

	if (fd < 0)
		return -1;
	result = tg_fgetfilecon(fd, context);
	close_quietly(fd);
	return result;
}

static int set_at(const char *path, int flags, const char *context)
{
	int fd = open_path(path, flags), result;

	if (fd < 0)
		return -1;
	result = tg_fsetfilecon(fd, context);
	close_quietly(fd);
	return result;
}

int tg_getfilecon(const char *path, char **context)
{
	return get_at(path, 0, context);
}

int tg_lgetfilecon(const char *path, char **context)
{
	return get_at(path, O_NOFOLLOW, context);
}

int tg_setfilecon(const char *path, const char *context)
{
	return set_at(path, 0, context);
}

int tg_lsetfilecon(const char *path, const char *context)
{
	return set_at(path, O_NOFOLLOW, context);
}

int tg_is_enforcing(void)
{
	struct line line = request("mode", NULL);
	char *mode;
	int enforcing;

	if (ask(&line, -1, &mode))
		return -1;
	enforcing = !strcmp(mode, "enforcing");
	free(mode);
	return enforcing;
}

int tg_check_access(const char *source, const char *target, const char *object_class,
		    const char *permission)
{
	struct line line = request("access", source);
	char *words, *rest, *word;
	int allowed = 0;

	put(&line, " ", 1);
	put_word(&line, target);
	put(&line, " ", 1);
	put_word(&line, object_class);
	/* Names of permissions are never encoded: the answer's words can be told apart. */
	if (ask(&line, -1, &words))
		return -1;
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		allowed |= !strcmp(word, permission);
	free(words);
	if (allowed)
		return 0;
	return fail(EACCES, "the policy does not allow %s %s %s %s", source, target, object_class,
		    permission);
}
