/* Files without their names: handles, O_PATH, links, notifications, and files that the kernel
 * opens itself. */
#include "acts.h"
#include <linux/fs.h>
#include <linux/fiemap.h>
#include <linux/fsverity.h>
#include <linux/quota.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/xattr.h>

#define SYS_setxattrat_ 463
#define SYS_file_setattr_ 469

/* A descriptor that only names a file. */
static int by_path(const char *path)
{
	return open(path, O_PATH | O_CLOEXEC);
}

/* The name of a descriptor; opening it opens the file again. */
static const char *name_of(int file)
{
	static char name[32];

	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	return name;
}

union handle {
	struct file_handle of;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

static int open_handle(void)
{
	union handle handle = {.of.handle_bytes = MAX_HANDLE_SZ};
	int mount, place = open(".", O_RDONLY);

	if (name_to_handle_at(AT_FDCWD, SECRET, &handle.of, &mount, 0))
		return failed();
	return tells_secret(open_by_handle_at(place, &handle.of, O_RDONLY));
}

static int path_reopened(void)
{
	return reads_secret(name_of(by_path(SECRET)));
}

static int path_linked(void)
{
	return outcome(linkat(by_path(SECRET), "", AT_FDCWD, "linked", AT_EMPTY_PATH));
}

static int path_linked_by_proc(void)
{
	return outcome(
		linkat(AT_FDCWD, name_of(by_path(SECRET)), AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
}

static int path_chmod(void)
{
	return outcome(chmod(name_of(by_path(NOTICE)), 0777));
}

static int path_chown(void)
{
	return outcome(fchownat(by_path(NOTICE), "", 1000, 1000, AT_EMPTY_PATH));
}

static int path_times(void)
{
	return outcome(utimensat(by_path(NOTICE), "", NULL, AT_EMPTY_PATH));
}

static int path_truncate(void)
{
	return outcome(truncate(name_of(by_path(NOTICE)), 0));
}

static int path_setxattr(void)
{
	return outcome(setxattr(name_of(by_path(NOTICE)), "user.kept", "x", 1, 0));
}

static int path_acl(void)
{
	static const char everybody[] = "\2\0\0\0\1\0\7\0\xff\xff\xff\xff\4\0\7\0\xff\xff\xff\xff"
					"\40\0\7\0\xff\xff\xff\xff";

	return outcome(setxattr(name_of(by_path(NOTICE)), "system.posix_acl_access", everybody,
				sizeof everybody - 1, 0));
}

static int path_capability(void)
{
	static const char effective[20] = {1, 0, 0, 2, (char)0xff};

	return outcome(setxattr(name_of(by_path(NOTICE)), "security.capability", effective,
				sizeof effective, 0));
}

static int path_stat(void)
{
	struct statx status;

	return outcome(statx(by_path(SECRET), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status));
}

static void make_secret_link(void)
{
	unlink(VAULT "/symlink");
	must(!symlink(TEXT_OF_SECRET, VAULT "/symlink"), "symlink");
}

static int path_readlink(void)
{
	char text[16] = "";
	int link = open(VAULT "/symlink", O_PATH | O_NOFOLLOW);

	if (readlinkat(link, "", text, sizeof text - 1) < 0)
		return failed();
	return strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

static int path_listed(void)
{
	return outcome(open(name_of(by_path(VAULT)), O_RDONLY | O_DIRECTORY));
}

static int path_executed(void)
{
	char *words[] = {"notice", NULL};

	syscall(SYS_execveat, by_path(NOTICE), "", words, words, AT_EMPTY_PATH);
	/* An executable file that is no program gives another error. */
	return errno == ENOEXEC ? REACHED : failed();
}

static void make_notice_executable(void)
{
	must(!chmod(NOTICE, 0777), NOTICE);
}

static int proc_root(void)
{
	return reads_secret("/proc/thread-self/root" SECRET);
}

static int proc_cwd(void)
{
	if (chdir(VAULT))
		return failed();
	return reads_secret("/proc/self/cwd/secret");
}

static int nameless_into_vault(void)
{
	int file = open(".", O_TMPFILE | O_RDWR, 0666);

	return outcome(
		linkat(AT_FDCWD, name_of(file), AT_FDCWD, VAULT "/named", AT_SYMLINK_FOLLOW));
}

static int nameless_in_vault(void)
{
	return outcome(open(VAULT, O_TMPFILE | O_RDWR, 0666));
}

static int exchanged(void)
{
	write_file("own", "own");
	return outcome(renameat2(AT_FDCWD, "own", AT_FDCWD, SECRET, RENAME_EXCHANGE));
}

static int whiteout(void)
{
	return outcome(renameat2(AT_FDCWD, SECRET, AT_FDCWD, "taken", RENAME_WHITEOUT));
}

static int renamed_over(void)
{
	write_file("own", "own");
	return outcome(rename("own", NOTICE));
}

/* An access mode that neither reads nor writes, for ioctl(2) alone. */
static int opened_for_ioctl(void)
{
	struct fiemap extents = {.fm_length = ~0ULL};
	int file = open(SECRET, O_ACCMODE);

	return file < 0 ? failed() : outcome(ioctl(file, FS_IOC_FIEMAP, &extents));
}

static int flags_by_ioctl(void)
{
	int flags = FS_NOATIME_FL, file = open(NOTICE, O_RDONLY);

	return outcome(ioctl(file, FS_IOC_SETFLAGS, &flags));
}

static int attributes_by_ioctl(void)
{
	struct fsxattr attributes = {.fsx_xflags = FS_XFLAG_NOATIME};
	int file = open(NOTICE, O_RDONLY);

	return outcome(ioctl(file, FS_IOC_FSSETXATTR, &attributes));
}

/* file_setattr(2) of 6.17: the same without a descriptor. */
static int attributes_by_path(void)
{
	struct {
		uint64_t flags;
		uint32_t extent, extents, project, cow;
	} attributes = {.flags = FS_XFLAG_NOATIME};

	return outcome(
		syscall(SYS_file_setattr_, AT_FDCWD, NOTICE, &attributes, sizeof attributes, 0));
}

/* setxattrat(2) of 6.13. */
static int attribute_at_path(void)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} arguments = {.value = (uintptr_t) "x", .size = 1};

	return outcome(syscall(SYS_setxattrat_, AT_FDCWD, NOTICE, 0, "user.kept", &arguments,
			       sizeof arguments));
}

/* A file that is sealed for good, by a descriptor that only reads. */
static int verity(void)
{
	struct fsverity_enable_arg sealed = {
		.version = 1, .hash_algorithm = FS_VERITY_HASH_ALG_SHA256, .block_size = 4096};
	int file = open(NOTICE, O_RDONLY);

	return outcome(ioctl(file, FS_IOC_ENABLE_VERITY, &sealed));
}

static int leased(void)
{
	return outcome(fcntl(open(NOTICE, O_RDONLY), F_SETLEASE, F_RDLCK));
}

static int locked_for_descriptor(void)
{
	struct flock all = {.l_type = F_RDLCK};

	return outcome(fcntl(open(NOTICE, O_RDONLY), F_OFD_SETLK, &all));
}

static void read_often(void)
{
	keeping();
	for (;;) {
		int file = open(SECRET, O_RDONLY);
		char byte;

		must(file >= 0 && read(file, &byte, 1) == 1, SECRET);
		close(file);
		usleep(20000);
	}
}

/* A listener on a whole mount gets a descriptor of each file that another process reads. */
static int fanotify_of_mount(void)
{
	struct fanotify_event_metadata event;
	int group = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);

	if (fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_ACCESS, AT_FDCWD, "/srv"))
		return failed();
	if (read(group, &event, sizeof event) < 0)
		return failed();
	return event.fd < 0 ? event.fd : tells_secret(event.fd);
}

/* The same with handles in the events, which are then opened. */
static int fanotify_of_names(void)
{
	union {
		struct fanotify_event_metadata event;
		char room[512];
	} told;
	struct fanotify_event_info_fid *info = (void *)(told.room + sizeof told.event);
	int group = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY);

	if (fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_ACCESS, AT_FDCWD, "/srv"))
		return failed();
	if (read(group, &told, sizeof told) < 0)
		return failed();
	return tells_secret(open_by_handle_at(open(".", O_RDONLY), (void *)info->handle, O_RDONLY));
}

/* Accesses of other processes wait for the answer of such a listener. */
static int fanotify_that_decides(void)
{
	int group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

	return outcome(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, NOTICE));
}

static int inotify_by_path(void)
{
	return outcome(inotify_add_watch(inotify_init(), name_of(by_path(SECRET)), IN_ACCESS));
}

static int dnotify(void)
{
	return outcome(fcntl(open("/srv/notices", O_RDONLY), F_NOTIFY, DN_ACCESS | DN_MULTISHOT));
}

static void make_swap(void)
{
	static char page[40960];
	int file = open(SECRET, O_WRONLY | O_TRUNC);

	memset(page, 0, sizeof page);
	page[1024] = 1; /* the version, and the last page */
	page[1028] = sizeof page / 4096 - 1;
	memcpy(page + 4086, "SWAPSPACE2", 10);
	must(write(file, page, sizeof page) == sizeof page && !fsync(file), SECRET);
	close(file);
}

static int swapped(void)
{
	int result = swapon(SECRET, 0);

	if (!result)
		swapoff(SECRET);
	return outcome(result);
}

static int accounted(void)
{
	int result = syscall(SYS_acct, SECRET);

	if (!result)
		syscall(SYS_acct, NULL);
	return outcome(result);
}

static int quota_file(void)
{
	syscall(SYS_quotactl, QCMD(Q_QUOTAON, USRQUOTA), "/dev/ram0", QFMT_VFS_V1, SECRET);
	/* The policy is checked before the missing quota format is noticed. */
	return errno == ESRCH ? REACHED : failed();
}

static int copied_in_kernel(void)
{
	int from = open(SECRET, O_RDONLY), to = open("copy", O_RDWR | O_CREAT, 0666);

	if (from < 0)
		return failed();
	if (copy_file_range(from, NULL, to, NULL, 6, 0) < 0)
		return failed();
	return reads_secret("copy");
}

const struct act file_acts[] = {
	{"open_handle", open_handle},
	{"path_reopened", path_reopened},
	{"path_linked", path_linked},
	{"path_linked_by_proc", path_linked_by_proc},
	{"path_chmod", path_chmod},
	{"path_chown", path_chown},
	{"path_times", path_times},
	{"path_truncate", path_truncate, notice_changed},
	{"path_setxattr", path_setxattr},
	{"path_acl", path_acl},
	{"path_capability", path_capability},
	{"path_stat", path_stat},
	{"path_readlink", path_readlink, .prepare = make_secret_link},
	{"path_listed", path_listed},
	{"path_executed", path_executed, .prepare = make_notice_executable},
	{"proc_root", proc_root},
	{"proc_cwd", proc_cwd},
	{"nameless_into_vault", nameless_into_vault},
	{"nameless_in_vault", nameless_in_vault},
	{"exchanged", exchanged, secret_changed},
	{"whiteout", whiteout},
	{"renamed_over", renamed_over, notice_changed},
	{"opened_for_ioctl", opened_for_ioctl},
	{"flags_by_ioctl", flags_by_ioctl},
	{"attributes_by_ioctl", attributes_by_ioctl},
	{"attributes_by_path", attributes_by_path},
	{"attribute_at_path", attribute_at_path},
	{"verity", verity},
	{"leased", leased},
	{"locked_for_descriptor", locked_for_descriptor},
	{"fanotify_of_mount", fanotify_of_mount, .keeper = read_often},
	{"fanotify_of_names", fanotify_of_names, .keeper = read_often},
	{"fanotify_that_decides", fanotify_that_decides},
	{"inotify_by_path", inotify_by_path},
	{"dnotify", dnotify},
	{"swapped", swapped, .prepare = make_swap},
	{"accounted", accounted},
	{"quota_file", quota_file},
	{"copied_in_kernel", copied_in_kernel},
	{},
};
