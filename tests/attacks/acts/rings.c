/* io_uring: its work in a worker, and in a thread that polls for work. */
#include "acts.h"
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* One request of a ring of its own; returns the kernel's answer. */
static int request(unsigned setup, struct io_uring_sqe entry)
{
	struct ring ring;

	return make_ring(&ring, setup) ? failed() : ask_ring(&ring, &entry);
}

static int in_worker(struct io_uring_sqe entry)
{
	int result;

	entry.flags |= IOSQE_ASYNC;
	result = request(0, entry);
	return result < 0 ? result : REACHED;
}

static struct io_uring_sqe to_open(const char *path)
{
	return (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
				     .fd = AT_FDCWD,
				     .addr = (uintptr_t)path,
				     .open_flags = O_RDONLY};
}

static int answer(int result)
{
	return result < 0 ? result : tells_secret(result);
}

static int uring_open(void)
{
	return answer(request(0, to_open(SECRET)));
}

static int uring_open_by_worker(void)
{
	struct io_uring_sqe entry = to_open(SECRET);

	entry.flags = IOSQE_ASYNC;
	return answer(request(0, entry));
}

static int uring_open_by_poller(void)
{
	return answer(request(IORING_SETUP_SQPOLL, to_open(SECRET)));
}

static int uring_openat2(void)
{
	struct open_how how = {.flags = O_RDONLY};

	return answer(request(0, (struct io_uring_sqe){.opcode = IORING_OP_OPENAT2,
						       .fd = AT_FDCWD,
						       .addr = (uintptr_t)SECRET,
						       .len = sizeof how,
						       .off = (uintptr_t)&how,
						       .flags = IOSQE_ASYNC}));
}

/* Opens into the table of the ring, where no process has a descriptor, and reads from there. */
static int uring_open_registered(void)
{
	char text[16] = "";
	int none = -1, result;
	struct ring ring;
	struct io_uring_sqe open = to_open(SECRET), read = {.opcode = IORING_OP_READ,
							    .flags = IOSQE_FIXED_FILE,
							    .addr = (uintptr_t)text,
							    .len = sizeof text - 1};

	open.file_index = 1;
	if (make_ring(&ring, 0) ||
	    syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &none, 1))
		return failed();
	result = ask_ring(&ring, &open);
	if (result >= 0)
		result = ask_ring(&ring, &read);
	return result < 0 ? result : strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

static int uring_statx(void)
{
	struct statx status;

	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_STATX,
					       .fd = AT_FDCWD,
					       .addr = (uintptr_t)SECRET,
					       .off = (uintptr_t)&status,
					       .len = STATX_BASIC_STATS});
}

static int uring_rename(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_RENAMEAT,
					       .fd = AT_FDCWD,
					       .addr = (uintptr_t)SECRET,
					       .len = AT_FDCWD,
					       .off = (uintptr_t) "taken"});
}

static int uring_link(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_LINKAT,
					       .fd = AT_FDCWD,
					       .addr = (uintptr_t)SECRET,
					       .len = AT_FDCWD,
					       .off = (uintptr_t) "linked"});
}

static int uring_symlink(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_SYMLINKAT,
					       .fd = AT_FDCWD,
					       .addr = (uintptr_t) "to",
					       .off = (uintptr_t)VAULT "/link"});
}

static int uring_mkdir(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_MKDIRAT,
					       .fd = AT_FDCWD,
					       .addr = (uintptr_t)VAULT "/folder",
					       .len = 0777});
}

static int uring_unlink(void)
{
	return in_worker((struct io_uring_sqe){
		.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = (uintptr_t)SECRET});
}

static void give_attribute(void)
{
	must(!syscall(SYS_setxattr, SECRET, "user.kept", TEXT_OF_SECRET, strlen(TEXT_OF_SECRET), 0),
	     "setxattr");
}

static int uring_getxattr(void)
{
	char text[16] = "";
	int result = in_worker((struct io_uring_sqe){.opcode = IORING_OP_GETXATTR,
						     .addr = (uintptr_t) "user.kept",
						     .off = (uintptr_t)text,
						     .len = sizeof text - 1,
						     .addr3 = (uintptr_t)SECRET});

	return result < 0 ? result : strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

static int uring_setxattr(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_SETXATTR,
					       .addr = (uintptr_t) "user.kept",
					       .off = (uintptr_t) "x",
					       .len = 1,
					       .addr3 = (uintptr_t)NOTICE});
}

static int uring_fsetxattr(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_FSETXATTR,
					       .fd = open(NOTICE, O_RDONLY),
					       .addr = (uintptr_t) "user.kept",
					       .off = (uintptr_t) "x",
					       .len = 1});
}

#define KEPT "kept"

static socklen_t kept_address(struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "\0" KEPT};
	return offsetof(struct sockaddr_un, sun_path) + sizeof KEPT;
}

static void keep_listening(void)
{
	struct sockaddr_un address;
	socklen_t length = kept_address(&address);
	int listening = socket(AF_UNIX, SOCK_STREAM, 0);

	must(!bind(listening, (void *)&address, length) && !listen(listening, 4), KEPT);
	keeping();
	pause();
}

static int uring_connect(void)
{
	struct sockaddr_un address;
	socklen_t length = kept_address(&address);

	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_CONNECT,
					       .fd = socket(AF_UNIX, SOCK_STREAM, 0),
					       .addr = (uintptr_t)&address,
					       .off = length});
}

/* A command to a device by a ring: class io_uring's `cmd`, in addition to the checks of opening. */
static int uring_command(void)
{
	return in_worker((struct io_uring_sqe){.opcode = IORING_OP_URING_CMD,
					       .fd = open("/dev/null", O_RDWR)});
}

const struct act ring_acts[] = {
	{"uring_open", uring_open},
	{"uring_open_by_worker", uring_open_by_worker},
	{"uring_open_by_poller", uring_open_by_poller},
	{"uring_openat2", uring_openat2},
	{"uring_open_registered", uring_open_registered},
	{"uring_statx", uring_statx},
	{"uring_rename", uring_rename},
	{"uring_link", uring_link},
	{"uring_symlink", uring_symlink},
	{"uring_mkdir", uring_mkdir},
	{"uring_unlink", uring_unlink},
	{"uring_getxattr", uring_getxattr, .prepare = give_attribute},
	{"uring_setxattr", uring_setxattr},
	{"uring_fsetxattr", uring_fsetxattr},
	{"uring_connect", uring_connect, .keeper = keep_listening},
	{"uring_command", uring_command},
	{},
};
