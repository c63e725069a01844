/* subvolume create DIRECTORY NAME | subvolume snapshot SOURCE DIRECTORY NAME |
 * subvolume readonly SOURCE DIRECTORY NAME | subvolume clone FROM TO */
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static int opened(const char *path, int flags)
{
	int file = open(path, flags, 0644);

	if (file >= 0)
		return file;
	perror(path);
	exit(1);
}

static int told(const char *what, int status)
{
	if (status >= 0)
		return 0;
	perror(what);
	return 1;
}

static int create(const char *directory, const char *name)
{
	struct btrfs_ioctl_vol_args arguments = {};

	strncpy(arguments.name, name, sizeof arguments.name - 1);
	return told("create", ioctl(opened(directory, O_RDONLY | O_DIRECTORY),
				    BTRFS_IOC_SUBVOL_CREATE, &arguments));
}

static int snapshot(const char *source, const char *directory, const char *name)
{
	struct btrfs_ioctl_vol_args arguments = {.fd = opened(source, O_RDONLY | O_DIRECTORY)};

	strncpy(arguments.name, name, sizeof arguments.name - 1);
	return told("snapshot", ioctl(opened(directory, O_RDONLY | O_DIRECTORY),
				      BTRFS_IOC_SNAP_CREATE, &arguments));
}

static int readonly(const char *source, const char *directory, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 arguments = {.fd = opened(source, O_RDONLY | O_DIRECTORY),
						    .flags = BTRFS_SUBVOL_RDONLY};

	strncpy(arguments.name, name, sizeof arguments.name - 1);
	return told("readonly", ioctl(opened(directory, O_RDONLY | O_DIRECTORY),
				      BTRFS_IOC_SNAP_CREATE_V2, &arguments));
}

static int clone(const char *from, const char *to)
{
	return told("clone", ioctl(opened(to, O_WRONLY | O_CREAT | O_TRUNC), FICLONE,
				   opened(from, O_RDONLY)));
}

int main(int count, char **words)
{
	if (count == 4 && !strcmp(words[1], "create"))
		return create(words[2], words[3]);
	if (count == 5 && !strcmp(words[1], "snapshot"))
		return snapshot(words[2], words[3], words[4]);
	if (count == 5 && !strcmp(words[1], "readonly"))
		return readonly(words[2], words[3], words[4]);
	if (count == 4 && !strcmp(words[1], "clone"))
		return clone(words[2], words[3]);
	return 2;
}
