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

/* Sends a file to a client, or says why not. What a level hides from the server must be closed
 * again before it goes back. */
static void send_to(int client, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);

	printf("  %s: %s\n", path, file < 0 ? strerror(errno) : "granted");
	if (file < 0)
		return;
	sendfile(client, file, NULL, 1 << 20);
	close(file);
}

static void serve(int client, const char *path, int whole)
{
	unsigned int before;
	char *peer = NULL;

	if (tg_getpeercon(client, &peer))
		printf("a client: %s\n", tg_error());
	else
		printf("%s\n", peer);
	tg_freecon(peer);
	if (whole ? tg_act_as(client, &before) : tg_act_for(client, &before)) {
		printf("  cannot act for it: %s\n", tg_error());
		return;
	}
	send_to(client, path);
	/* A server that cannot go back must not serve others with this client's label. */
	if (tg_act_back(before)) {
		printf("  cannot go back: %s\n", tg_error());
		exit(3);
	}
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
