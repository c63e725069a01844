/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "page.h"

#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A daemon that was killed while it wrote leaves the page in the middle of a change. */
#define PATIENCE 1000

/* It stays mapped: a daemon that ends enforcement says so in the page, and keeps the file. */
static const struct tg_status_page *mapped;
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

/* NULL with errno. */
static const struct tg_status_page *map(void)
{
	int fd = open(TG_STATUS, O_RDONLY | O_CLOEXEC), number;
	void *memory = MAP_FAILED;
	struct stat found;

	if (fd < 0)
		return NULL;
	errno = ENOTSUP; /* of another version */
	if (!fstat(fd, &found) && found.st_size >= (off_t)sizeof(struct tg_status_page))
		memory = mmap(NULL, sizeof(struct tg_status_page), PROT_READ, MAP_SHARED, fd, 0);
	number = errno;
	close(fd);
	errno = number;
	return memory == MAP_FAILED ? NULL : memory;
}

static const struct tg_status_page *page(void)
{
	const struct tg_status_page *found = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);

	if (found)
		return found;
	pthread_mutex_lock(&mapping);
	found = mapped;
	if (!found) {
		found = map();
		__atomic_store_n(&mapped, found, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&mapping);
	return found;
}

unsigned int page_sequence(void)
{
	const struct tg_status_page *found = page();

	return found ? __atomic_load_n(&found->sequence, __ATOMIC_ACQUIRE) : 0;
}

int page_read(struct tg_status_page *out)
{
	const struct tg_status_page *found = page();

	for (int tries = 0; found && tries < PATIENCE; tries++) {
		unsigned int before = __atomic_load_n(&found->sequence, __ATOMIC_ACQUIRE);

		memcpy(out, found, sizeof(*out));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == __atomic_load_n(&found->sequence, __ATOMIC_RELAXED))
			break;
		sched_yield();
	}
	if (!found)
		return -1;
	if (out->version == TG_STATUS_VERSION && out->policyload)
		return 0;
	errno = out->policyload ? ENOTSUP : ENOENT;
	return -1;
}

int page_watch(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), number;

	if (fd < 0 || inotify_add_watch(fd, TG_STATUS, IN_MODIFY) >= 0)
		return fd;
	number = errno;
	close(fd);
	errno = number;
	return -1;
}
