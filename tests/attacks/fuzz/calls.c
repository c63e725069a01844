/* The calls. A call more is a function and a line of the table. */
#include "../acts/acts.h"
#include "fuzz.h"
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <linux/stat.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <netinet/in.h>

#define CALL(name) static long call_##name(void)

static int open_flags(void)
{
	return PICK(O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE, O_PATH) | O_NONBLOCK |
	       MIX(O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_DIRECTORY, O_NOATIME);
}

static size_t size(void)
{
	return PICK(0, 1, 7, 512);
}

/* ---- Files by their names. */
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

static const char *attribute(void)
{
	static const char *const names[] = {"user.kept", "user.other", "trusted.kept",
					    "system.posix_acl_access"};

	return names[one_of(sizeof names / sizeof *names)];
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

/* ---- Descriptors. */
CALL(read)
{
	return read(descriptor(), buffer + 2048, size());
}

CALL(write)
{
	return write(descriptor(), buffer, size());
}

CALL(pwrite)
{
	return pwrite(descriptor(), buffer, size(), 0);
}

CALL(getdents)
{
	return syscall(SYS_getdents64, descriptor(), buffer + 2048, 1024);
}

CALL(ftruncate)
{
	return ftruncate(descriptor(), size());
}

CALL(fallocate)
{
	return fallocate(descriptor(),
			 PICK(0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE),
			 0, 4096);
}

CALL(fchmod)
{
	return fchmod(descriptor(), 0777);
}

CALL(fchown)
{
	return fchown(descriptor(), 0, PICK(0, 100));
}

CALL(fsetxattr)
{
	return fsetxattr(descriptor(), attribute(), buffer, size(), 0);
}

CALL(fgetxattr)
{
	return fgetxattr(descriptor(), attribute(), buffer, 64);
}

CALL(flock)
{
	return flock(descriptor(), PICK(LOCK_SH, LOCK_EX, LOCK_UN) | LOCK_NB);
}

CALL(fcntl)
{
	struct flock all = {.l_type = PICK(F_RDLCK, F_WRLCK, F_UNLCK)};
	int file = descriptor();

	switch (one_of(8)) {
	case 0:
		return fcntl(file, F_GETFL);
	case 1:
		return fcntl(file, F_SETFL, MIX(O_APPEND, O_ASYNC) | O_NONBLOCK);
	case 2:
		return fcntl(file, F_SETLK, &all);
	case 3:
		return fcntl(file, F_OFD_SETLK, &all);
	case 4:
		return fcntl(file, F_SETLEASE, PICK(F_RDLCK, F_WRLCK, F_UNLCK));
	case 5:
		return fcntl(file, F_NOTIFY, DN_CREATE);
	case 6:
		return fcntl(file, F_GETOWN) < -1 ? 0 : fcntl(file, F_GETLK, &all);
	default:
		return fcntl(file, F_ADD_SEALS, PICK(F_SEAL_GROW, F_SEAL_WRITE));
	}
}

CALL(ioctl)
{
	static const unsigned commands[] = {
		FIONREAD,	   FIOCLEX,	      FIONCLEX, FIGETBSZ, FS_IOC_GETFLAGS,
		FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FIOQSIZE, 0x5401 /* TCGETS */};

	return ioctl(descriptor(), commands[one_of(sizeof commands / sizeof *commands)],
		     buffer + 2048);
}

CALL(dup)
{
	return keep_descriptor(dup(descriptor()));
}

CALL(openat_from)
{
	return keep_descriptor(
		openat(descriptor(), PICK(0, 1) ? "secret" : ".", open_flags(), 0666));
}

CALL(splice)
{
	return splice(descriptor(), NULL, descriptor(), NULL, 7, SPLICE_F_NONBLOCK);
}

CALL(tee)
{
	return tee(descriptor(), descriptor(), 7, SPLICE_F_NONBLOCK);
}

CALL(vmsplice)
{
	struct iovec text = {buffer, 7};

	return vmsplice(descriptor(), &text, 1, SPLICE_F_NONBLOCK);
}

CALL(sendfile)
{
	return sendfile(descriptor(), descriptor(), NULL, 7);
}

CALL(copy_file_range)
{
	return copy_file_range(descriptor(), NULL, descriptor(), NULL, 7, 0);
}

CALL(memfd)
{
	return keep_descriptor(memfd_create("memory", MIX(MFD_CLOEXEC, MFD_ALLOW_SEALING)));
}

CALL(userfaultfd)
{
	return keep_descriptor(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
}

CALL(pipe)
{
	int pair[2];

	if (pipe2(pair, O_NONBLOCK))
		return -1;
	keep_descriptor(pair[0]);
	return keep_descriptor(pair[1]);
}

CALL(epoll)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(descriptor(), EPOLL_CTL_ADD, descriptor(), &event);
}

CALL(epoll_create)
{
	return keep_descriptor(epoll_create1(0));
}

CALL(timerfd)
{
	return keep_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
}

/* ---- Memory. */
CALL(mmap)
{
	void *made = mmap(NULL, 8192, MIX(PROT_READ, PROT_WRITE, PROT_EXEC),
			  PICK(MAP_PRIVATE, MAP_SHARED), descriptor(), 0);

	return keep_memory(made) == MAP_FAILED ? -1 : 0;
}

CALL(mmap_anonymous)
{
	void *made = mmap(NULL, 8192, MIX(PROT_READ, PROT_WRITE, PROT_EXEC),
			  PICK(MAP_PRIVATE, MAP_SHARED) | MAP_ANONYMOUS, -1, 0);

	return keep_memory(made) == MAP_FAILED ? -1 : 0;
}

CALL(mprotect)
{
	return mprotect(memory(), 4096, MIX(PROT_READ, PROT_WRITE, PROT_EXEC));
}

CALL(remap_file_pages)
{
	return syscall(SYS_remap_file_pages, memory(), 4096L, 0L, 0L, 0L);
}

CALL(personality)
{
	return personality(PICK(0, READ_IMPLIES_EXEC));
}

/* ---- Processes. */
CALL(kill)
{
	return kill(process(), PICK(0, SIGURG, SIGCONT));
}

CALL(tgkill)
{
	pid_t target = process();

	return syscall(SYS_tgkill, target, target, PICK(0, SIGURG));
}

CALL(pidfd_open)
{
	return keep_descriptor(syscall(SYS_pidfd_open, process(), 0));
}

CALL(pidfd_signal)
{
	return syscall(SYS_pidfd_send_signal, descriptor(), PICK(0, SIGURG), NULL, 0);
}

CALL(pidfd_getfd)
{
	return keep_descriptor(syscall(SYS_pidfd_getfd, descriptor(), PICK(0, 1, 2), 0));
}

CALL(vm_read)
{
	struct iovec here = {buffer + 2048, 7}, there = {held, 7};

	return syscall(SYS_process_vm_readv, process(), &here, 1, &there, 1, 0);
}

CALL(vm_write)
{
	struct iovec here = {buffer, 7}, there = {held, 7};

	return syscall(SYS_process_vm_writev, process(), &here, 1, &there, 1, 0);
}

CALL(ptrace)
{
	return ptrace(PICK(PTRACE_SEIZE, PTRACE_ATTACH), keeper(), 0, 0);
}

CALL(kcmp)
{
	return syscall(SYS_kcmp, process(), process(), KCMP_VM, 0, 0);
}

CALL(getpgid)
{
	return getpgid(process());
}

CALL(getsid)
{
	return getsid(process());
}

CALL(setpriority)
{
	return setpriority(PRIO_PROCESS, process(), PICK(0, 1));
}

CALL(ioprio)
{
	return syscall(SYS_ioprio_set, 1, process(), PICK(2 << 13, 3 << 13));
}

CALL(affinity)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	return one_of(2) ? sched_setaffinity(process(), sizeof first, &first)
			 : sched_getaffinity(process(), sizeof first, &first);
}

CALL(scheduler)
{
	struct sched_param none = {};

	return one_of(2) ? sched_setscheduler(process(), PICK(SCHED_OTHER, SCHED_BATCH), &none)
			 : sched_getscheduler(process());
}

CALL(prlimit)
{
	struct rlimit limit = {512, 1024};

	return one_of(2) ? prlimit(process(), RLIMIT_NPROC, &limit, NULL)
			 : prlimit(process(), RLIMIT_NPROC, NULL, &limit);
}

CALL(prctl)
{
	return one_of(2) ? prctl(PR_SET_DUMPABLE, PICK(0, 1)) : prctl(PR_SET_KEEPCAPS, PICK(0, 1));
}

CALL(perf_event)
{
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.size = sizeof event};

	return keep_descriptor(syscall(SYS_perf_event_open, &event, PICK(0, 1) ? process() : -1,
				       PICK(0, 1) - 1, -1, 0));
}

CALL(execute)
{
	char *words[] = {"program", NULL};
	const char *program = path();
	int status;
	pid_t child = vfork();

	if (!child) {
		execve(program, words, NULL);
		_exit(errno == EACCES ? 100 : 101);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	errno = WIFEXITED(status) && WEXITSTATUS(status) == 100 ? EACCES : ENOEXEC;
	return WIFEXITED(status) && WEXITSTATUS(status) > 99 ? -1 : 0;
}

CALL(fork)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	return child < 0 ? -1 : waitpid(child, NULL, 0);
}

/* ---- Namespaces and mounts. */
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

/* ---- Sockets. */
CALL(socket)
{
	return keep_descriptor(
		socket(PICK(AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK),
		       PICK(SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET) | SOCK_NONBLOCK,
		       PICK(0, 0, 0, IPPROTO_TCP, IPPROTO_SCTP, 262)));
}

static const struct sockaddr_in kept = {.sin_family = AF_INET,
					.sin_port = __builtin_bswap16(PORT),
					.sin_addr = {.s_addr = 0x0100007f}};

CALL(socket_bind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, one_of(2) ? "new" : VAULT "/new");
	return one_of(2) ? bind(descriptor(), (void *)&address, sizeof address)
			 : bind(descriptor(), (const void *)&kept, sizeof kept);
}

CALL(connect)
{
	return connect(descriptor(), (const void *)&kept, sizeof kept);
}

CALL(listen)
{
	return listen(descriptor(), 2);
}

CALL(sendto)
{
	return sendto(descriptor(), buffer, 7, MSG_NOSIGNAL | MSG_DONTWAIT | MIX(MSG_FASTOPEN),
		      (const void *)&kept, sizeof kept);
}

CALL(send)
{
	return send(descriptor(), buffer, 7, MSG_NOSIGNAL | MSG_DONTWAIT);
}

CALL(receive)
{
	return recv(descriptor(), buffer + 2048, 64, MSG_DONTWAIT);
}

CALL(pass)
{
	return send_descriptor(descriptor(), descriptor());
}

CALL(passed)
{
	return keep_descriptor(receive_descriptor(descriptor()));
}

CALL(sockopt)
{
	int one = 1;
	socklen_t length = sizeof one;

	return one_of(2) ? setsockopt(descriptor(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one)
			 : getsockopt(descriptor(), SOL_SOCKET, SO_TYPE, &one, &length);
}

CALL(name_of_socket)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	return one_of(2) ? getsockname(descriptor(), (void *)&address, &length)
			 : getpeername(descriptor(), (void *)&address, &length);
}

CALL(shutdown)
{
	return shutdown(descriptor(), PICK(SHUT_RD, SHUT_WR));
}

/* ---- Objects without a file. */
static int last_queue, last_segment, last_semaphores;
static long last_key;

CALL(msgget)
{
	return last_queue = msgget(IPC_PRIVATE, 0600);
}

CALL(msgsnd)
{
	return msgsnd(last_queue, (long[]){1, 2}, 8, IPC_NOWAIT);
}

CALL(msgrcv)
{
	return msgrcv(last_queue, buffer + 2048, 64, 0, IPC_NOWAIT);
}

CALL(shmget)
{
	return last_segment = shmget(IPC_PRIVATE, 4096, 0600);
}

CALL(shmat)
{
	return keep_memory(shmat(last_segment, NULL, PICK(0, SHM_RDONLY, SHM_EXEC))) == MAP_FAILED
		       ? -1
		       : 0;
}

CALL(semget)
{
	return last_semaphores = semget(IPC_PRIVATE, 1, 0600);
}

CALL(semop)
{
	return semop(last_semaphores, &(struct sembuf){0, 1, IPC_NOWAIT}, 1);
}

CALL(remove)
{
	return one_of(2) ? shmctl(last_segment, IPC_RMID, NULL)
			 : msgctl(last_queue, IPC_RMID, NULL);
}

CALL(add_key)
{
	return last_key = syscall(SYS_add_key, "user", PICK(0, 1) ? "one" : "two", "x", 1,
				  KEY_SPEC_PROCESS_KEYRING);
}

CALL(keyctl)
{
	return syscall(SYS_keyctl, PICK(KEYCTL_READ, KEYCTL_DESCRIBE, KEYCTL_REVOKE, KEYCTL_CLEAR),
		       PICK(0, 1) ? last_key : KEY_SPEC_PROCESS_KEYRING, buffer + 2048, 64, 0);
}

/* ---- By a ring, whose worker does it half of the times. */
CALL(ring)
{
	static const int by_path[] = {IORING_OP_OPENAT, IORING_OP_STATX, IORING_OP_UNLINKAT,
				      IORING_OP_MKDIRAT};
	static const int by_file[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FALLOCATE,
				      IORING_OP_FSYNC};
	struct io_uring_sqe entry = {.flags = PICK(0, IOSQE_ASYNC)};
	struct statx status;
	struct ring ring;
	int result;

	if (one_of(2)) {
		entry.opcode = by_path[one_of(4)];
		entry.fd = directory();
		entry.addr = (uintptr_t)path();
		if (entry.opcode == IORING_OP_OPENAT)
			entry.open_flags = open_flags();
		if (entry.opcode == IORING_OP_STATX)
			entry.off = (uintptr_t)&status;
	} else {
		entry.opcode = by_file[one_of(4)];
		entry.fd = descriptor();
		entry.addr = entry.opcode == IORING_OP_FALLOCATE ? 4096
			     : entry.opcode == IORING_OP_FSYNC	 ? 0
								 : (uintptr_t)buffer;
		entry.len = entry.opcode == IORING_OP_FALLOCATE || entry.opcode == IORING_OP_FSYNC
				    ? 0
				    : 7;
	}
	if (make_ring(&ring, 0))
		return -1;
	result = ask_ring(&ring, &entry);
	close_ring(&ring);
	if (entry.opcode == IORING_OP_OPENAT && result >= 0)
		keep_descriptor(result);
	errno = result < 0 ? -result : 0;
	return result < 0 ? -1 : 0;
}

#define LINE(name)                                                                                 \
	{                                                                                          \
#name, call_##name                                                                 \
	}
const struct call calls[] = {
	LINE(openat),
	LINE(tmpfile),
	LINE(mkdirat),
	LINE(mknodat),
	LINE(symlinkat),
	LINE(linkat),
	LINE(linkat_empty),
	LINE(unlinkat),
	LINE(renameat2),
	LINE(readlinkat),
	LINE(fchmodat),
	LINE(fchownat),
	LINE(utimensat),
	LINE(statx),
	LINE(faccessat),
	LINE(truncate),
	LINE(statfs),
	LINE(setxattr),
	LINE(lsetxattr),
	LINE(getxattr),
	LINE(removexattr),
	LINE(chdir),
	LINE(inotify),
	LINE(inotify_init),
	LINE(fanotify_init),
	LINE(fanotify_mark),
	LINE(name_to_handle),
	LINE(open_by_handle),
	LINE(read),
	LINE(write),
	LINE(pwrite),
	LINE(getdents),
	LINE(ftruncate),
	LINE(fallocate),
	LINE(fchmod),
	LINE(fchown),
	LINE(fsetxattr),
	LINE(fgetxattr),
	LINE(flock),
	LINE(fcntl),
	LINE(ioctl),
	LINE(dup),
	LINE(openat_from),
	LINE(splice),
	LINE(tee),
	LINE(vmsplice),
	LINE(sendfile),
	LINE(copy_file_range),
	LINE(memfd),
	LINE(userfaultfd),
	LINE(pipe),
	LINE(epoll),
	LINE(epoll_create),
	LINE(timerfd),
	LINE(mmap),
	LINE(mmap_anonymous),
	LINE(mprotect),
	LINE(remap_file_pages),
	LINE(personality),
	LINE(kill),
	LINE(tgkill),
	LINE(pidfd_open),
	LINE(pidfd_signal),
	LINE(pidfd_getfd),
	LINE(vm_read),
	LINE(vm_write),
	LINE(ptrace),
	LINE(kcmp),
	LINE(getpgid),
	LINE(getsid),
	LINE(setpriority),
	LINE(ioprio),
	LINE(affinity),
	LINE(scheduler),
	LINE(prlimit),
	LINE(prctl),
	LINE(perf_event),
	LINE(execute),
	LINE(fork),
	LINE(unshare),
	LINE(setns),
	LINE(bind),
	LINE(mount),
	LINE(umount),
	LINE(open_tree),
	LINE(move_mount),
	LINE(fsopen),
	LINE(fsconfig),
	LINE(fsmount),
	LINE(fspick),
	LINE(socket),
	LINE(socket_bind),
	LINE(connect),
	LINE(listen),
	LINE(sendto),
	LINE(send),
	LINE(receive),
	LINE(pass),
	LINE(passed),
	LINE(sockopt),
	LINE(name_of_socket),
	LINE(shutdown),
	LINE(msgget),
	LINE(msgsnd),
	LINE(msgrcv),
	LINE(shmget),
	LINE(shmat),
	LINE(semget),
	LINE(semop),
	LINE(remove),
	LINE(add_key),
	LINE(keyctl),
	LINE(ring),
};
const size_t number_of_calls = sizeof calls / sizeof *calls;
