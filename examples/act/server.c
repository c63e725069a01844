/* SPDX-License-Identifier: MIT */
/*
 * Sends a file to each client that may read it: the server opens it with the client's range, so
 * the kernel decides as if the client opened it itself.
 *
 *   server SOCKET FILE [whole]     whole: with the client's whole context
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tollgate.h>
#include <unistd.h>

/* Opens a file for a client. Returns a descriptor, or -1 with errno. */
static int open_for(int client, const char *path, int whole)
{
	unsigned int before;
	int file, error;

	if (whole ? tg_act_as(client, &before) : tg_act_for(client, &before)) {
		error = errno;
		printf("  cannot act for it: %s\n", tg_error());
		errno = error;
		return -1;
	}
	file = open(path, O_RDONLY | O_CLOEXEC);
	error = errno;
	/* A server that cannot go back must not serve others with this client's label. */
	if (tg_act_back(before)) {
		printf("  cannot go back: %s\n", tg_error());
		exit(3);
	}
	errno = error;
	return file;
}

static void serve(int client, const char *path, int whole)
{
	char *peer = NULL;
	int file;

	if (tg_getpeercon(client, &peer))
		printf("a client: %s\n", tg_error());
	else
		printf("%s\n", peer);
	tg_freecon(peer);
	file = open_for(client, path, whole);
	printf("  %s: %s\n", path, file < 0 ? strerror(errno) : "granted");
	if (file < 0)
		return;
	sendfile(client, file, NULL, 1 << 20);
	close(file);
}

int main(int count, char **words)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client;

	if (count < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	strncpy(place.sun_path, words[1], sizeof(place.sun_path) - 1);
	unlink(words[1]);
	if (bind(listening, (void *)&place, sizeof(place)) || listen(listening, 8)) {
		perror(words[1]);
		return 2;
	}
	while ((client = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		serve(client, words[2], count > 3);
		close(client);
	}
	perror("accept");
	return 2;
}
