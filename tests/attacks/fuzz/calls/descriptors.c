/* What is done by descriptors. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/fs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/xattr.h>

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
