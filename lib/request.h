/* SPDX-License-Identifier: MIT */
/* Requests to the daemon (docs/library.md has the protocol), and what a call fails of. Of the
 * library's own files only. */
#ifndef TOLLGATE_REQUEST_H
#define TOLLGATE_REQUEST_H

#include <stddef.h>

/* crates/abi/paths.h has it too; a test holds them equal. */
#define SOCKET "/run/tollgate/socket"

/* A line, which grows; `failed` once there was no memory for it. */
struct line {
	char *text;
	size_t length, room;
	int failed;
};

/* Says why a call fails: -1, with errno. */
__attribute__((format(printf, 2, 3))) int fail(int number, const char *format, ...);
/* Closes without changing errno. */
void close_quietly(int fd);

/* A request of up to three words that are known, and one of the caller's unless that is NULL. */
struct line request(const char *words, const char *last);
/* Adds a word to it. */
void put_word(struct line *line, const char *word);
/* Asks, with a descriptor unless that is -1. The request is freed; *word is allocated, if it is
 * wanted. */
int ask(struct line *request, int with, char **word);

#endif
