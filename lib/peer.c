/* SPDX-License-Identifier: MIT */
/* The peers of sockets, and acting for them. */
#define _GNU_SOURCE
#include "request.h"
#include "tollgate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_PEERSEC
#define SO_PEERSEC 31
#endif
#define MAX_TEXT 1024 /* bytes: the longest context that the kernel tells */

/* The context that the kernel tells. Where nothing is enforced, older kernels say that they have
 * told one, and write nothing. */
static int told(int fd, char **context)
{
	char text[MAX_TEXT + 1] = "";
	socklen_t length = MAX_TEXT;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERSEC, text, &length) || !*text)
		return 1;
	*context = strdup(text);
	return *context ? 0 : fail(ENOMEM, "no memory for a context");
}

int tg_getpeercon(int fd, char **context)
{
	struct line line;
	int result;

	if (!context)
		return fail(EINVAL, "no place for a context");
	result = told(fd, context);
	if (result <= 0)
		return result;
	line = request("peer", NULL);
	return ask(&line, fd, context);
}

int tg_getpeercon_from(int fd, const struct sockaddr *sender, unsigned int length, char **context)
{
	const struct sockaddr_in *v4 = (const void *)sender;
	const struct sockaddr_in6 *v6 = (const void *)sender;
	char address[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 9];
	struct line line;

	if (!context || !sender)
		return fail(EINVAL, "no place for a context, or no sender");
	if (length >= sizeof(*v4) && sender->sa_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, address, sizeof(address));
		snprintf(text, sizeof(text), "%s:%d", address, ntohs(v4->sin_port));
	} else if (length >= sizeof(*v6) && sender->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof(address));
		snprintf(text, sizeof(text), "[%s]:%d", address, ntohs(v6->sin6_port));
	} else {
		return fail(EAFNOSUPPORT, "labels are known of senders over IPv4 and IPv6 only");
	}
	line = request("peer", text);
	return ask(&line, fd, context);
}

static int act(const char *words, int fd, unsigned int *before)
{
	struct line line;
	unsigned long own, sid;
	char *answer, *rest, *end;

	if (!before)
		return fail(EINVAL, "no place for what the thread is now");
	line = request(words, NULL);
	if (ask(&line, fd, &answer))
		return -1;
	own = strtoul(answer, &rest, 10);
	sid = strtoul(rest, &end, 10);
	free(answer);
	if (!own || !sid)
		return fail(EPROTO, "the daemon's answer is garbled");
	if (become(sid))
		return -1;
	*before = own;
	return 0;
}

int tg_act_for(int fd, unsigned int *before)
{
	return act("act range", fd, before);
}

int tg_act_as(int fd, unsigned int *before)
{
	return act("act context", fd, before);
}

int tg_act_back(unsigned int before)
{
	return before ? become(before) : fail(EINVAL, "the thread acts for nobody");
}
