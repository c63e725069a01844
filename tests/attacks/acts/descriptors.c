/* Descriptors from other domains, by all ways in which the kernel passes them. */
#include "acts.h"
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static void pass(int file)
{
	int intruder;

	keeping();
	intruder = meet_intruder();
	must(file >= 0 && send_descriptor(intruder, file) > 0, "pass a descriptor");
	pause();
}

static void pass_secret(void)
{
	pass(open(SECRET, O_RDONLY));
}

static int passed_secret(void)
{
	return tells_secret(receive_descriptor(meet_keeper()));
}

/* Received by io_uring, where a worker does it. */
static int passed_by_ring(void)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte;
	struct iovec text = {&byte, 1};
	struct msghdr message = {.msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	struct io_uring_sqe entry = {.opcode = IORING_OP_RECVMSG,
				     .flags = IOSQE_ASYNC,
				     .addr = (uintptr_t)&message,
				     .len = 1};
	struct ring ring;
	int result, file;

	entry.fd = meet_keeper();
	if (make_ring(&ring, 0))
		return failed();
	result = ask_ring(&ring, &entry);
	if (result < 0)
		return result;
	if (message.msg_controllen < CMSG_LEN(sizeof file))
		return -EACCES;
	memcpy(&file, CMSG_DATA(&control.header), sizeof file);
	return tells_secret(file);
}

/* O_PATH descriptors of the secret, which give no access, are not checked; opening one is. */
static void pass_name_of_secret(void)
{
	pass(open(SECRET, O_PATH));
}

static int passed_name(void)
{
	int file = receive_descriptor(meet_keeper());
	char name[32];

	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	return file < 0 ? failed() : reads_secret(name);
}

static void pass_vault(void)
{
	pass(open(VAULT, O_PATH | O_DIRECTORY));
}

static int passed_directory(void)
{
	int vault = receive_descriptor(meet_keeper());

	return vault < 0 ? failed() : tells_secret(openat(vault, "secret", O_RDONLY));
}

static void pass_mount(void)
{
	pass(syscall(SYS_open_tree, AT_FDCWD, SECRET, OPEN_TREE_CLONE));
}

static int passed_mount(void)
{
	int tree = receive_descriptor(meet_keeper());

	write_file("here", "");
	if (tree < 0 ||
	    syscall(SYS_move_mount, tree, "", AT_FDCWD, "here", MOVE_MOUNT_F_EMPTY_PATH))
		return failed();
	return reads_secret("here");
}

/* No message can pass a ring: the keeper takes it from the intruder, which sends its number.
 */
static int take_ring(int intruder)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	int number, ring;

	must(!getsockopt(intruder, SOL_SOCKET, SO_PEERCRED, &peer, &length), "who is the intruder");
	must(read(intruder, &number, sizeof number) == sizeof number, "which ring");
	ring = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, peer.pid, 0), number, 0);
	must(ring >= 0, "take the ring");
	return ring;
}

/* Sends a file that the keeper has opened to the intruder's ring. */
static void send_to_ring(void)
{
	int files[] = {open(SECRET, O_RDONLY), -1}, intruder;
	struct ring own;
	struct io_uring_sqe entry = {
		.opcode = IORING_OP_MSG_RING, .addr = IORING_MSG_SEND_FD, .file_index = 1};

	keeping();
	intruder = meet_intruder();
	entry.fd = take_ring(intruder);
	must(!make_ring(&own, 0), "a ring");
	must(!syscall(SYS_io_uring_register, own.fd, IORING_REGISTER_FILES, files, 2), "register");
	errno = -ask_ring(&own, &entry);
	must(errno <= 0, "send to the intruder's ring");
	must(write(intruder, "x", 1) == 1, "tell the intruder");
	pause();
}

/* Reads from the first place of a ring's table of files. */
static int reads_registered(struct ring *ring)
{
	char text[16] = "";
	struct io_uring_sqe entry = {.opcode = IORING_OP_READ,
				     .flags = IOSQE_FIXED_FILE,
				     .addr = (uintptr_t)text,
				     .len = sizeof text - 1};
	int result = ask_ring(ring, &entry);

	return result < 0 ? result : strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

/* Lets the keeper take a ring, and reads the file that it registers there. */
static int filled_by_keeper(void)
{
	int none = -1, meeting = meet_keeper();
	struct ring ring;
	char byte;

	if (make_ring(&ring, 0) ||
	    syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &none, 1))
		return failed();
	if (write(meeting, &ring.fd, sizeof ring.fd) < 0 || read(meeting, &byte, 1) != 1)
		return -ECONNRESET;
	/* A message has a completion at both ends. */
	if (*ring.cq_head != *ring.cq_tail)
		await_ring(&ring);
	return reads_registered(&ring);
}

static void register_in_ring(void)
{
	int secret = open(SECRET, O_RDONLY), intruder;
	struct io_uring_files_update update = {.fds = (uintptr_t)&secret};

	keeping();
	intruder = meet_intruder();
	must(syscall(SYS_io_uring_register, take_ring(intruder), IORING_REGISTER_FILES_UPDATE,
		     &update, 1) == 1,
	     "register a file");
	must(write(intruder, "x", 1) == 1, "tell the intruder");
	pause();
}

/* A descriptor that the keeper puts into a process of the intruder's as the supervisor of its
 * calls. */
static void install(void)
{
	struct seccomp_notif call = {};
	struct seccomp_notif_addfd add = {.srcfd = open(SECRET, O_RDONLY),
					  .flags = SECCOMP_ADDFD_FLAG_SEND};
	int listener;

	keeping();
	listener = receive_descriptor(meet_intruder());
	must(!ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call), "wait for a call");
	add.id = call.id;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) {
		struct seccomp_notif_resp denied = {.id = call.id, .error = -EACCES};

		must(!ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &denied), "answer");
	}
	pause();
}

static int installed(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	int listener, meeting = meet_keeper();

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			   &program);
	if (listener < 0 || send_descriptor(meeting, listener) < 0)
		return failed();
	return tells_secret(syscall(SYS_getppid));
}

static void hold_secret_open(void)
{
	must(dup2(open(SECRET, O_RDONLY), 9) == 9, "hold the secret");
	keeping();
	pause();
}

static int taken(void)
{
	int process = syscall(SYS_pidfd_open, keeper(), 0);

	return tells_secret(syscall(SYS_pidfd_getfd, process, 9, 0));
}

static int taken_by_proc(void)
{
	char name[32];

	snprintf(name, sizeof name, "/proc/%d/fd/9", keeper());
	return reads_secret(name);
}

static void make_memory(void)
{
	int memory = memfd_create("secret", 0);

	must(write(memory, TEXT_OF_SECRET, 6) == 6 && !lseek(memory, 0, SEEK_SET), "memfd");
	pass(memory);
}

static int passed_memory(void)
{
	return tells_secret(receive_descriptor(meet_keeper()));
}

static void pass_pipe(void)
{
	int pipes[2];

	must(!pipe(pipes) && write(pipes[1], TEXT_OF_SECRET, 6) == 6, "pipe");
	pass(pipes[0]);
}

/* A pipe is not read but copied to another. */
static int passed_pipe(void)
{
	int pipes[2], from = receive_descriptor(meet_keeper());

	if (from < 0 || pipe(pipes) || tee(from, pipes[1], 6, 0) < 0)
		return failed();
	return tells_secret(pipes[0]);
}

static void pass_process(void)
{
	pass(syscall(SYS_pidfd_open, getpid(), 0));
}

static int passed_process(void)
{
	int process = receive_descriptor(meet_keeper());

	return process < 0 ? failed()
			   : outcome(syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0));
}

static void pass_namespace(void)
{
	must(!unshare(CLONE_NEWIPC), "unshare");
	pass(open("/proc/self/ns/ipc", O_RDONLY));
}

static int passed_namespace(void)
{
	int space = receive_descriptor(meet_keeper());

	return space < 0 ? failed() : outcome(setns(space, CLONE_NEWIPC));
}

const struct act descriptor_acts[] = {
	{"passed_secret", passed_secret, .keeper = pass_secret},
	{"passed_by_ring", passed_by_ring, .keeper = pass_secret},
	{"passed_name", passed_name, .keeper = pass_name_of_secret},
	{"passed_directory", passed_directory, .keeper = pass_vault},
	{"passed_mount", passed_mount, .keeper = pass_mount},
	{"sent_to_ring", filled_by_keeper, .keeper = send_to_ring},
	{"registered_in_ring", filled_by_keeper, .keeper = register_in_ring},
	{"installed", installed, .keeper = install},
	{"taken", taken, .keeper = hold_secret_open},
	{"taken_by_proc", taken_by_proc, .keeper = hold_secret_open},
	{"passed_memory", passed_memory, .keeper = make_memory},
	{"passed_pipe", passed_pipe, .keeper = pass_pipe},
	{"passed_process", passed_process, .keeper = pass_process},
	{"passed_namespace", passed_namespace, .keeper = pass_namespace},
	{},
};
