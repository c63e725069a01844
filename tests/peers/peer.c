/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks for the context of the peer with nothing but getsockopt(2).
 *
 *   peer alone              sockets of this process
 *   peer serve PATH|PORT    accepts one connection, over a unix socket or TCP on the loopback
 *   peer connect PATH|PORT
 *   peer price              how long it takes to ask for SO_TYPE
 *   peer detach             detaches all links of BPF that it can
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERSEC
#define SO_PEERSEC 31
#endif

#define CALLS 2000

static void tell_in(const char *name, int fd, socklen_t room)
{
	char text[8192] = "never written";
	socklen_t length = room;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERSEC, text, &length))
		printf("%s: %s\n", name, strerrorname_np(errno));
	else
		printf("%s: %s %u\n", name, text, length);
	fflush(stdout);
}

static void tell(const char *name, int fd)
{
	tell_in(name, fd, 1000);
}

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(2);
}

static socklen_t address(const char *name, struct sockaddr_storage *to)
{
	struct sockaddr_in *internet = (void *)to;
	struct sockaddr_un *local = (void *)to;

	memset(to, 0, sizeof(*to));
	if (*name == '/') {
		local->sun_family = AF_UNIX;
		strncpy(local->sun_path, name, sizeof(local->sun_path) - 1);
		return sizeof(*local);
	}
	internet->sin_family = AF_INET;
	internet->sin_port = htons(atoi(name));
	internet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*internet);
}

/* An answer that is longer than a page. */
static void groups(void)
{
	static gid_t some[2000], told[2000];
	socklen_t length = sizeof(told);
	int pair[2];

	check(setgroups(2000, some), "setgroups");
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	if (getsockopt(pair[0], SOL_SOCKET, SO_PEERGROUPS, told, &length))
		printf("groups: %s\n", strerrorname_np(errno));
	else
		printf("groups: %u bytes\n", length);
	check(setgroups(0, some), "setgroups");
}

static void alone(void)
{
	int pair[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	tell("pair", pair[0]);
	tell("other end", pair[1]);
	tell_in("page", pair[0], 4096);
	tell_in("pages", pair[0], 8192);
	tell_in("short", pair[0], 10);
	tell_in("none", pair[0], 0);
	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "socketpair");
	tell("packets", pair[0]);
	check(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
	tell("datagrams", pair[0]);
	tell("unconnected", socket(AF_UNIX, SOCK_STREAM, 0));
	tell("tcp", socket(AF_INET, SOCK_STREAM, 0));
	tell("udp", socket(AF_INET, SOCK_DGRAM, 0));
	groups();
}

static void serve(const char *name)
{
	struct sockaddr_storage place;
	socklen_t length = address(name, &place);
	int fd = socket(place.ss_family, SOCK_STREAM, 0), on = 1, end;
	char byte;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (*name == '/')
		unlink(name);
	check(bind(fd, (void *)&place, length), "bind");
	check(listen(fd, 1), "listen");
	tell("listening", fd);
	end = accept(fd, NULL, NULL);
	check(end < 0, "accept");
	tell("accepted", end);
	check(write(end, "", 1) != 1, "write");
	check(read(end, &byte, 1) < 0, "read");
	tell("after the end", end);
}

static void join(const char *name)
{
	struct sockaddr_storage place;
	socklen_t length = address(name, &place);
	char byte;

	for (int tries = 0; tries < 300; tries++) {
		int fd = socket(place.ss_family, SOCK_STREAM, 0);

		if (!connect(fd, (void *)&place, length)) {
			check(read(fd, &byte, 1) != 1, "read");
			tell("connected", fd);
			return;
		}
		check(errno != ENOENT && errno != ECONNREFUSED, "connect");
		close(fd);
		usleep(100000);
	}
	check(1, "connect");
}

static void price(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), type;
	socklen_t length = sizeof(type);

	struct timespec from, to;
	long least = 0, took;

	for (int run = 0; run < 5; run++) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (int i = 0; i < CALLS; i++)
			check(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length), "getsockopt");
		clock_gettime(CLOCK_MONOTONIC, &to);
		took = (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
		least = !run || took < least ? took : least;
	}
	printf("getsockopt: %ld ns\n", least / CALLS);
}

static void detach(void)
{
	union bpf_attr next = {0}, get = {0}, end = {0};
	int seen = 0, denied = 0, detached = 0;

	while (!syscall(SYS_bpf, BPF_LINK_GET_NEXT_ID, &next, sizeof(next))) {
		next.start_id = get.link_id = next.next_id;
		seen++;
		int link = syscall(SYS_bpf, BPF_LINK_GET_FD_BY_ID, &get, sizeof(get));

		denied += link < 0 && errno == EACCES;
		end.link_detach.link_fd = link;
		detached += link >= 0 && !syscall(SYS_bpf, BPF_LINK_DETACH, &end, sizeof(end));
		if (link >= 0)
			close(link);
	}
	printf("links: %s, denied: %d, detached: %d\n", seen ? "some" : "none", denied, detached);
}

int main(int count, char **words)
{
	const char *act = count > 1 ? words[1] : "";

	if (!strcmp(act, "alone"))
		alone();
	else if (!strcmp(act, "serve") && count > 2)
		serve(words[2]);
	else if (!strcmp(act, "connect") && count > 2)
		join(words[2]);
	else if (!strcmp(act, "detach"))
		detach();
	else if (!strcmp(act, "price"))
		price();
	else
		return 2;
	return 0;
}
