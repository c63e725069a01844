/* Namespaces and mounts. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>

CALL(unshare)
{
	return unshare(PICK(CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_FS, CLONE_FILES));
}

CALL(setns)
{
	return setns(descriptor(), 0);
}

CALL(bind)
{
	return mount(path(), path(), NULL, MS_BIND, NULL);
}

CALL(mount)
{
	static const char *const kinds[] = {"tmpfs", "ramfs", "proc", "mqueue"};

	return mount("none", path(), kinds[one_of(4)], 0, NULL);
}

CALL(umount)
{
	return umount2(path(), MIX(MNT_DETACH));
}

CALL(open_tree)
{
	return keep_descriptor(syscall(SYS_open_tree, directory(), path(), MIX(OPEN_TREE_CLONE)));
}

CALL(move_mount)
{
	return syscall(SYS_move_mount, descriptor(), "", directory(), path(),
		       MOVE_MOUNT_F_EMPTY_PATH);
}

CALL(fsopen)
{
	return keep_descriptor(syscall(SYS_fsopen, PICK(0, 1) ? "tmpfs" : "ramfs", 0));
}

CALL(fsconfig)
{
	return syscall(SYS_fsconfig, descriptor(), FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

CALL(fsmount)
{
	return keep_descriptor(syscall(SYS_fsmount, descriptor(), 0, 0));
}

CALL(fspick)
{
	return keep_descriptor(syscall(SYS_fspick, directory(), path(), 0));
}
