/* SPDX-License-Identifier: MIT */
/* Requests to the daemon (docs/library.md describes the protocol), and errors of calls. Only
 * for the library's own files. */
#ifndef TOLLGATE_REQUEST_H
#define TOLLGATE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

/* crates/abi/paths.h has it too; a test holds them equal. */
#define SOCKET "/run/tollgate/socket"

/* A line, which grows; `failed` is set once there is no memory for it. */
struct line {
	char *text;
	size_t length, room;
	int failed;
};

/* Records why a call fails. Returns -1, with errno. */
__attribute__((format(printf, 2, 3))) int fail(int number, const char *format, ...);
/* Closes without changing errno. */
void close_quietly(int fd);

/* A request of up to three fixed words, and one of the caller's unless that is NULL. */
struct line request(const char *words, const char *last);
/* Adds a word to a request. */
void put_word(struct line *line, const char *word);
/* Sends a request, with a descriptor unless that is -1, and waits for the answer. The request
 * is freed. *word is allocated if it is wanted. */
int ask(struct line *request, int with, char **word);

/* The context of a SID, as the daemon has recorded it; allocated (process.c). */
int text_of_sid(uint32_t wanted, char **context);
/* Gives the calling thread the SID of another context (process.c). */
int become(unsigned long sid);

#endif
