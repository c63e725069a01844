/* SPDX-License-Identifier: MIT */
/* A client of Tollgate's daemon. There is one connection per call, so there is no state to
 * protect between threads or over fork. */
#define _GNU_SOURCE
#include "request.h"
#include "tollgate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define GREETING "tollgate 1 "
#define ANSWER_TIMEOUT 120 /* seconds */
#define MAX_LINE 65536	   /* bytes of a reply */

static _Thread_local char error_text[512] = "no call has failed";

const char *tg_error(void)
{
	return error_text;
}

void tg_freecon(char *context)
{
	free(context);
}

int fail(int number, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error_text, sizeof(error_text), format, arguments);
	va_end(arguments);
	errno = number;
	return -1;
}

void close_quietly(int fd)
{
	int number = errno;

	close(fd);
	errno = number;
}

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

/* Adds a word, in which bytes that are not graphic ASCII become % and two digits. */
static void encode(struct line *line, const char *word)
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

/* Decodes a word in place. Returns -1 if it is not valid. */
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

void put_word(struct line *line, const char *word)
{
	put(line, " ", 1);
	encode(line, word);
}

struct line request(const char *words, const char *last)
{
	struct line line = {0};

	put(&line, words, strlen(words));
	if (last)
		put_word(&line, last);
	return line;
}

static int connect_daemon(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	struct timeval patience = {.tv_sec = ANSWER_TIMEOUT};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fail(errno, "cannot make a socket: %m");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			fail(errno, "no daemon answers on " SOCKET
				    " (%m): start it with `tollgate enforce POLICY`");
		else
			fail(errno, "cannot connect to the daemon on " SOCKET ": %m");
		close_quietly(fd);
		return -1;
	}
	return fd;
}

/* Sends a complete line, and `with` beside its first byte unless it is -1. */
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

/* Receives the next line, without its newline. The daemon sends one at a time, and nothing
 * after it. */
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
		if (line->failed || line->length > MAX_LINE)
			return fail(EMSGSIZE, "the daemon's answer is too long");
	}
	line->text[--line->length] = 0;
	return 0;
}

/* Takes the word of `ok WORD` from an answer, or fails according to `error ERRNO TEXT`. */
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

/* Answers the greeting in `line`, and sends `request`. */
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

int ask(struct line *request, int with, char **word)
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
