/* SPDX-License-Identifier: MIT */
/* Prints what a server sends: client SOCKET. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	char text[4096];
	ssize_t length;

	if (count < 2)
		return 2;
	strncpy(place.sun_path, words[1], sizeof(place.sun_path) - 1);
	if (connect(server, (void *)&place, sizeof(place))) {
		perror(words[1]);
		return 2;
	}
	while ((length = read(server, text, sizeof(text))) > 0)
		fwrite(text, 1, length, stdout);
	return 0;
}
