/* SPDX-License-Identifier: MIT */
/* Notices of changes, which SELinux sends over netlink: here the descriptor watches the status
 * page. */
#define _GNU_SOURCE
#include "avc.h"
#include "callbacks.h"
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <selinux/avc.h>
#include <unistd.h>

static int watched = -1;

int avc_netlink_open(int blocking)
{
	avc_netlink_close();
	watched = page_watch();
	if (watched >= 0 && blocking)
		fcntl(watched, F_SETFL, 0);
	return watched < 0 ? -1 : 0;
}

void avc_netlink_close(void)
{
	if (watched >= 0)
		close(watched);
	watched = -1;
}

int avc_netlink_acquire_fd(void)
{
	if (watched < 0 && avc_netlink_open(0))
		return -1;
	avc_follow_by_itself(0);
	return watched;
}

void avc_netlink_release_fd(void)
{
	avc_follow_by_itself(1);
}

/* Takes the notices that have come. Returns -1 if the descriptor is no longer of use. */
static int drain(void)
{
	char notices[4096];
	struct pollfd ready = {.fd = watched, .events = POLLIN};

	while (poll(&ready, 1, 0) > 0) {
		ssize_t count = read(watched, notices, sizeof(notices));

		if (count < 0 && errno != EINTR)
			return errno == EAGAIN ? 0 : -1;
	}
	return 0;
}

int avc_netlink_check_nb(void)
{
	int result = watched < 0 ? 0 : drain();

	follow_status();
	return result;
}

void avc_netlink_loop(void)
{
	struct pollfd ready = {.fd = watched, .events = POLLIN};

	while (watched >= 0 && (poll(&ready, 1, -1) >= 0 || errno == EINTR)) {
		if (avc_netlink_check_nb())
			break;
	}
}
