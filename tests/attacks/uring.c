// Writes the attribute of labels by io_uring with credentials that are not the thread's own:
// uring FILE CONTEXT.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char name[] = "security.bpf.tollgate";

static int personality(int ring)
{
	int number = syscall(SYS_io_uring_register, ring, IORING_REGISTER_PERSONALITY, 0, 0);

	// The thread's credentials are others from here on.
	prctl(PR_SET_KEEPCAPS, !prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0), 0, 0, 0);
	return number;
}

int main(int count, char **words)
{
	struct io_uring_params told = {0};
	int ring = syscall(SYS_io_uring_setup, 4, &told);
	int file = count == 3 ? open(words[1], O_RDONLY) : -1;
	size_t size = told.cq_off.cqes + told.cq_entries * sizeof(struct io_uring_cqe);
	char *queue = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entry =
		mmap(0, told.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		     IORING_OFF_SQES);

	if (ring < 0 || file < 0 || queue == MAP_FAILED || entry == MAP_FAILED) {
		perror("cannot begin");
		return 2;
	}
	entry->opcode = IORING_OP_FSETXATTR;
	entry->fd = file;
	entry->addr = (unsigned long)name;
	entry->addr2 = (unsigned long)words[2];
	entry->len = strlen(words[2]) + 1;
	entry->personality = personality(ring);
	*(unsigned *)(queue + told.sq_off.array) = 0;
	*(unsigned *)(queue + told.sq_off.tail) = 1;
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1) {
		perror("io_uring_enter");
		return 2;
	}
	int result = ((struct io_uring_cqe *)(queue + told.cq_off.cqes))->res;

	printf("%s\n", result ? strerror(-result) : "done");
	return result ? 1 : 0;
}
