/* Mounts: old calls and new ones, overlays, FUSE, loop devices, other instances of proc. */
#include "acts.h"
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define GUARDED_SYSCTL "sys/kernel/domainname" /* of type `guarded` in proc, by its path */
#define GUARDED_TABLE "net/arp"		       /* likewise */

/* Root of a user namespace and of its mounts, and of nothing else. */
static int enter_user_namespace(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -1;
	return append("/proc/self/setgroups", "deny") || append("/proc/self/uid_map", "0 0 1") ||
	       append("/proc/self/gid_map", "0 0 1");
}

static int bound(void)
{
	write_file("here", "");
	if (mount(SECRET, "here", NULL, MS_BIND, NULL))
		return failed();
	return reads_secret("here");
}

static int bound_over(void)
{
	write_file("own", "own");
	return outcome(mount("own", NOTICE, NULL, MS_BIND, NULL));
}

static int tree_moved_over(void)
{
	int tree;

	write_file("own", "own");
	tree = syscall(SYS_open_tree, AT_FDCWD, "own", OPEN_TREE_CLONE);
	if (tree < 0)
		return failed();
	return outcome(
		syscall(SYS_move_mount, tree, "", AT_FDCWD, NOTICE, MOVE_MOUNT_F_EMPTY_PATH));
}

static int tree_opened(void)
{
	int tree = syscall(SYS_open_tree, AT_FDCWD, VAULT, OPEN_TREE_CLONE | AT_RECURSIVE);

	return tree < 0 ? failed() : tells_secret(openat(tree, "secret", O_RDONLY));
}

/* ramfs, of which no confined domain may mount an instance, by fsopen(2). */
static int configured(void)
{
	int context = syscall(SYS_fsopen, "ramfs", 0);

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return failed();
	return outcome(syscall(SYS_fsmount, context, 0, 0));
}

static void mount_guarded(void)
{
	must(!mkdir("guarded", 0777) && !mount("none", "guarded", "ramfs", 0, NULL), "ramfs");
}

static int remounted(void)
{
	return outcome(mount(NULL, "guarded", NULL, MS_REMOUNT | MS_RDONLY, NULL));
}

static int reconfigured(void)
{
	int context = syscall(SYS_fspick, AT_FDCWD, "guarded", 0);

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, "ro", NULL, 0))
		return failed();
	return outcome(syscall(SYS_fsconfig, context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
}

static int attributes_of_mount(void)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

	return outcome(
		syscall(SYS_mount_setattr, AT_FDCWD, "guarded", 0, &attributes, sizeof attributes));
}

static int unmounted(void)
{
	return outcome(umount2("guarded", MNT_DETACH));
}

/* The root of a machine that runs in memory cannot be replaced, so another is mounted over it. */
static int root_pivoted(void)
{
	if (mount("/srv", "/srv", NULL, MS_BIND, NULL) || chdir("/srv") ||
	    mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") ||
	    mount("vault", "open", NULL, MS_BIND, NULL) || syscall(SYS_pivot_root, "open", "open"))
		return failed();
	return reads_secret("/secret");
}

static int root_changed(void)
{
	if (chroot(VAULT) || chdir("/"))
		return failed();
	return reads_secret("/secret");
}

/* An overlay with the vault below. */
static int overlaid(void)
{
	if (mkdir("up", 0777) || mkdir("work", 0777) || mkdir("over", 0777) ||
	    mount("overlay", "over", "overlay", 0, "lowerdir=" VAULT ",upperdir=up,workdir=work"))
		return failed();
	return reads_secret("over/secret");
}

/* The same as a process with capabilities in a user namespace only. */
static int overlaid_by_user(void)
{
	if (enter_user_namespace() || mkdir("up", 0777) || mkdir("work", 0777) ||
	    mkdir("over", 0777) ||
	    mount("overlay", "over", "overlay", 0,
		  "lowerdir=" VAULT ",upperdir=up,workdir=work,userxattr"))
		return failed();
	return reads_secret("over/secret");
}

/* An upper directory that claims to stand for another one below. */
static int overlaid_elsewhere(void)
{
	static const char elsewhere[] = "/vault";

	if (mkdir("up", 0777) || mkdir("work", 0777) || mkdir("over", 0777) ||
	    mkdir("up/d", 0777) ||
	    setxattr("up/d", "trusted.overlay.redirect", elsewhere, sizeof elsewhere - 1, 0) ||
	    mount("overlay", "over", "overlay", 0,
		  "lowerdir=/srv,upperdir=up,workdir=work,redirect_dir=on"))
		return failed();
	return reads_secret("over/d/secret");
}

/* A file that is changed in an overlay is a copy with the label of the original. */
static int copied_up(void)
{
	if (mkdir("up", 0777) || mkdir("work", 0777) || mkdir("over", 0777) ||
	    mount("overlay", "over", "overlay", 0,
		  "lowerdir=/srv/notices,upperdir=up,workdir=work"))
		return failed();
	return outcome(open("over/notice", O_RDWR));
}

/* Another instance of proc labels by the same paths. */
static int proc_of_own(void)
{
	if (mkdir("proc", 0777) || mount("none", "proc", "proc", 0, NULL))
		return failed();
	return outcome(open("proc/" GUARDED_SYSCTL, O_RDONLY));
}

/* A part of it at another place. */
static int proc_bound(void)
{
	if (mkdir("kernel", 0777) || mount("/proc/sys/kernel", "kernel", NULL, MS_BIND, NULL))
		return failed();
	return outcome(open("kernel/domainname", O_RDONLY));
}

static int proc_of_thread(void)
{
	return outcome(open("/proc/thread-self/" GUARDED_TABLE, O_RDONLY));
}

static int proc_of_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		return failed();
	return outcome(open("/proc/self/" GUARDED_TABLE, O_RDONLY));
}

/* The disk below everything. The intruder's own device for it is of type `open`. */
static int disk_by_device(void)
{
	struct stat place;

	if (stat(".", &place) || mknod("disk", S_IFBLK | 0600, place.st_dev))
		return failed();
	return outcome(open("disk", O_RDONLY));
}

/* ---- A file system of our own, by /dev/fuse: one directory with one file, a program that
 * reports its own label. */

static int fuse_device;

static void fuse_answer(const struct fuse_in_header *request, int error, const void *body,
			size_t length)
{
	static char room[1 << 20];
	struct fuse_out_header header = {
		.len = sizeof header + length, .error = error, .unique = request->unique};

	memcpy(room, &header, sizeof header);
	memcpy(room + sizeof header, body, length);
	must(write(fuse_device, room, header.len) >= 0 || errno == ENOENT, "answer by fuse");
}

static struct fuse_attr fuse_attributes(uint64_t node)
{
	struct stat program;

	must(!stat(PROBE, &program), PROBE);
	return node == FUSE_ROOT_ID
		       ? (struct fuse_attr){.ino = 1, .mode = S_IFDIR | 0777, .nlink = 2}
		       : (struct fuse_attr){.ino = 2,
					    .mode = S_IFREG | 0777,
					    .nlink = 1,
					    .size = program.st_size,
					    .blksize = 4096};
}

/* The label of the keeper's program, in a file system whose files report their own labels. */
static void fuse_getxattr(const struct fuse_in_header *request, const struct fuse_getxattr_in *in)
{
	static const char label[] = "system_u:object_r:gate:s0";
	const char *name = (const char *)(in + 1);
	struct fuse_getxattr_out length = {.size = sizeof label};

	if (strcmp(name, "security.selinux") && strcmp(name, "security.bpf.tollgate"))
		fuse_answer(request, -ENODATA, "", 0);
	else if (in->size)
		fuse_answer(request, 0, label, sizeof label);
	else
		fuse_answer(request, 0, &length, sizeof length);
}

static void fuse_read(const struct fuse_in_header *request, const struct fuse_read_in *in)
{
	static char room[1 << 19];
	int program = open(PROBE, O_RDONLY | O_CLOEXEC);
	ssize_t length =
		pread(program, room, in->size < sizeof room ? in->size : sizeof room, in->offset);

	close(program);
	fuse_answer(request, length < 0 ? failed() : 0, room, length < 0 ? 0 : length);
}

static void fuse_serve_one(const struct fuse_in_header *request, const void *in)
{
	struct fuse_attr_out attributes = {.attr = fuse_attributes(request->nodeid)};
	struct fuse_entry_out entry = {.nodeid = 2, .attr = fuse_attributes(2)};
	struct fuse_open_out opened = {.fh = 1};
	struct fuse_statfs_out capacity = {.st = {.bsize = 4096, .namelen = 255}};
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = 1 << 16,
				     .max_readahead = 1 << 16};

	switch (request->opcode) {
	case FUSE_INIT:
		return fuse_answer(request, 0, &init, sizeof init);
	case FUSE_GETATTR:
		return fuse_answer(request, 0, &attributes, sizeof attributes);
	case FUSE_LOOKUP:
		if (strcmp(in, "program"))
			return fuse_answer(request, -ENOENT, "", 0);
		return fuse_answer(request, 0, &entry, sizeof entry);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return fuse_answer(request, 0, &opened, sizeof opened);
	case FUSE_READ:
		return fuse_read(request, in);
	case FUSE_GETXATTR:
		return fuse_getxattr(request, in);
	case FUSE_STATFS:
		return fuse_answer(request, 0, &capacity, sizeof capacity);
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		return fuse_answer(request, 0, "", 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return fuse_answer(request, -ENOSYS, "", 0);
	}
}

static void *fuse_serve(void *unused)
{
	static char room[1 << 18];

	while (read(fuse_device, room, sizeof room) > 0)
		fuse_serve_one((void *)room, room + sizeof(struct fuse_in_header));
	return unused;
}

static int mount_fuse(void)
{
	char options[64];
	pthread_t server;

	fuse_device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_device < 0)
		return -1;
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_device);
	if (mkdir("fuse", 0777) || mount("forged", "fuse", "fuse", 0, options))
		return -1;
	return pthread_create(&server, NULL, fuse_serve, NULL);
}

/* Whether a program is executed as the keeper, because its file claims the keeper's label. */
static int executed_as_keeper(const char *path)
{
	int status;
	pid_t child = fork();

	if (!child) {
		execl(path, path, NULL);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status))
		return MISSED;
	return WEXITSTATUS(status) == PROBED ? REACHED
	       : WEXITSTATUS(status)	     ? -WEXITSTATUS(status)
					     : MISSED;
}

static int label_forged(void)
{
	return mount_fuse() ? failed() : executed_as_keeper("fuse/program");
}

static int label_forged_below_overlay(void)
{
	if (mount_fuse() || mkdir("up", 0777) || mkdir("work", 0777) || mkdir("over", 0777) ||
	    mount("overlay", "over", "overlay", 0, "lowerdir=fuse,upperdir=up,workdir=work"))
		return failed();
	return executed_as_keeper("over/program");
}

/* All of it without a privilege on the machine. */
static int label_forged_by_user(void)
{
	if (enter_user_namespace() || mount_fuse() || mkdir("up", 0777) || mkdir("work", 0777) ||
	    mkdir("over", 0777) ||
	    mount("overlay", "over", "overlay", 0,
		  "lowerdir=fuse,upperdir=up,workdir=work,userxattr"))
		return failed();
	return executed_as_keeper("over/program");
}

const struct act mount_acts[] = {
	{"bound", bound},
	{"bound_over", bound_over},
	{"tree_moved_over", tree_moved_over},
	{"tree_opened", tree_opened},
	{"configured", configured},
	{"remounted", remounted, .prepare = mount_guarded},
	{"reconfigured", reconfigured, .prepare = mount_guarded},
	{"attributes_of_mount", attributes_of_mount, .prepare = mount_guarded},
	{"unmounted", unmounted, .prepare = mount_guarded},
	{"root_pivoted", root_pivoted},
	{"root_changed", root_changed},
	{"overlaid", overlaid},
	{"overlaid_by_user", overlaid_by_user},
	{"overlaid_elsewhere", overlaid_elsewhere},
	{"copied_up", copied_up},
	{"proc_of_own", proc_of_own},
	{"proc_bound", proc_bound},
	{"proc_of_thread", proc_of_thread},
	{"proc_of_namespace", proc_of_namespace},
	{"disk_by_device", disk_by_device},
	{"label_forged", label_forged},
	{"label_forged_below_overlay", label_forged_below_overlay},
	{"label_forged_by_user", label_forged_by_user},
	{},
};
