/* Files by their names. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/stat.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

CALL(openat)
{
	return keep_descriptor(openat(directory(), path(), open_flags(), 0777));
}

CALL(tmpfile)
{
	return keep_descriptor(openat(directory(), path(), O_TMPFILE | O_RDWR, 0666));
}

CALL(mkdirat)
{
	return mkdirat(directory(), path(), 0777);
}

CALL(mknodat)
{
	return mknodat(directory(), path(), PICK(S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR) | 0666,
		       makedev(1, 3));
}

CALL(symlinkat)
{
	return symlinkat(path(), directory(), path());
}

CALL(linkat)
{
	return linkat(directory(), path(), directory(), path(), MIX(AT_SYMLINK_FOLLOW));
}

CALL(linkat_empty)
{
	return linkat(descriptor(), "", directory(), path(), AT_EMPTY_PATH);
}

CALL(unlinkat)
{
	return unlinkat(directory(), path(), MIX(AT_REMOVEDIR));
}

CALL(renameat2)
{
	return renameat2(directory(), path(), directory(), path(),
			 PICK(0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT));
}

CALL(readlinkat)
{
	return readlinkat(directory(), path(), buffer, 64);
}

CALL(fchmodat)
{
	return fchmodat(directory(), path(), PICK(0777, 0666, 0755), 0);
}

CALL(fchownat)
{
	return fchownat(directory(), path(), 0, PICK(0, 100),
			MIX(AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH));
}

CALL(utimensat)
{
	return utimensat(directory(), path(), NULL, MIX(AT_SYMLINK_NOFOLLOW));
}

CALL(statx)
{
	struct statx status;

	return statx(directory(), path(), MIX(AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH),
		     STATX_BASIC_STATS, &status);
}

CALL(faccessat)
{
	return syscall(SYS_faccessat2, directory(), path(), MIX(R_OK, W_OK, X_OK), MIX(AT_EACCESS));
}

CALL(truncate)
{
	return truncate(path(), size());
}

CALL(statfs)
{
	struct statfs status;

	return statfs(path(), &status);
}

CALL(setxattr)
{
	return setxattr(path(), attribute(), buffer, size(), PICK(0, XATTR_CREATE, XATTR_REPLACE));
}

CALL(lsetxattr)
{
	return lsetxattr(path(), attribute(), buffer, size(), 0);
}

CALL(getxattr)
{
	return getxattr(path(), attribute(), buffer, 64);
}

CALL(removexattr)
{
	return removexattr(path(), attribute());
}

CALL(chdir)
{
	return chdir(path());
}

CALL(inotify)
{
	return inotify_add_watch(descriptor(), path(),
				 MIX(IN_ACCESS, IN_MODIFY, IN_CREATE) | IN_OPEN);
}

CALL(inotify_init)
{
	return keep_descriptor(inotify_init1(IN_NONBLOCK));
}

CALL(fanotify_init)
{
	return keep_descriptor(fanotify_init(
		PICK(FAN_CLASS_NOTIF, FAN_CLASS_CONTENT, FAN_REPORT_FID) | FAN_NONBLOCK, O_RDONLY));
}

CALL(fanotify_mark)
{
	return fanotify_mark(descriptor(),
			     FAN_MARK_ADD | PICK(0, FAN_MARK_MOUNT, FAN_MARK_FILESYSTEM),
			     PICK(FAN_ACCESS, FAN_MODIFY, FAN_OPEN), AT_FDCWD, path());
}

static union {
	struct file_handle of;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
} handle;

CALL(name_to_handle)
{
	int mount;

	handle.of.handle_bytes = MAX_HANDLE_SZ;
	return name_to_handle_at(directory(), path(), &handle.of, &mount, MIX(AT_SYMLINK_FOLLOW));
}

CALL(open_by_handle)
{
	return keep_descriptor(open_by_handle_at(descriptor(), &handle.of, open_flags()));
}
