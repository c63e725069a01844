/* By a ring, whose worker does it half of the times. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/io_uring.h>
#include <linux/stat.h>

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
