/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * serve FOLDER MUTE: mounts a file system with one file, "file", and serves it, until the file MUTE
 * exists: from then on it answers nothing. Its answers about names hold for ever, those about
 * attributes not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_NODE 2

static int device;

static void answer(const struct fuse_in_header *asked, int error, const void *with, size_t length)
{
	struct fuse_out_header head = {
		.len = sizeof head + length, .error = -error, .unique = asked->unique};
	struct iovec parts[] = {{&head, sizeof head}, {(void *)with, length}};

	if (writev(device, parts, 2) < 0)
		perror("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr found = {.ino = node, .nlink = 1, .blksize = 4096};

	found.mode = node == FILE_NODE ? S_IFREG | 0666 : S_IFDIR | 0777;
	return found;
}

static void serve(const struct fuse_in_header *asked, const char *rest)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .entry_valid = 1 << 30};
	struct fuse_attr_out found = {.attr = attributes(asked->nodeid)};
	struct fuse_statfs_out space = {.st = {.bsize = 4096, .namelen = 255}};
	struct fuse_open_out opened = {0};

	switch (asked->opcode) {
	case FUSE_INIT:
		return answer(asked, 0, &init, sizeof init);
	case FUSE_LOOKUP:
		entry.attr = attributes(FILE_NODE);
		return answer(asked, strcmp(rest, "file") ? ENOENT : 0, &entry,
			      strcmp(rest, "file") ? 0 : sizeof entry);
	case FUSE_GETATTR:
		return answer(asked, 0, &found, sizeof found);
	case FUSE_STATFS:
		return answer(asked, 0, &space, sizeof space);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return answer(asked, 0, &opened, sizeof opened);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	default:
		answer(asked, ENOSYS, NULL, 0);
	}
}

int main(int count, char **words)
{
	static char request[1 << 17];
	char options[128];

	device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (count != 3 || device < 0 || mount("serve", words[1], "fuse", 0, options)) {
		perror("serve");
		return 1;
	}
	for (;;) {
		ssize_t length = read(device, request, sizeof request);

		if (length < 0 && errno == ENODEV)
			return 0;
		if (length < (ssize_t)sizeof(struct fuse_in_header))
			continue;
		if (access(words[2], F_OK))
			serve((void *)request, request + sizeof(struct fuse_in_header));
	}
}
