/* One request at a time, by io_uring. */
#include "acts.h"
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define RING_SIZE 4096

int make_ring(struct ring *ring, unsigned flags)
{
	struct io_uring_params params = {.flags = flags, .sq_thread_idle = 1000};
	int fd = syscall(SYS_io_uring_setup, 4, &params);
	char *sq, *cq;

	if (fd < 0)
		return -1;
	sq = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	*ring = (struct ring){.fd = fd, .flags = flags, .sq = sq, .cq = cq};
	ring->entries =
		mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring->entries == MAP_FAILED)
		return -1;
	ring->tail = (void *)(sq + params.sq_off.tail);
	ring->mask = (void *)(sq + params.sq_off.ring_mask);
	ring->array = (void *)(sq + params.sq_off.array);
	ring->wake = (void *)(sq + params.sq_off.flags);
	ring->cq_head = (void *)(cq + params.cq_off.head);
	ring->cq_tail = (void *)(cq + params.cq_off.tail);
	ring->cq_mask = (void *)(cq + params.cq_off.ring_mask);
	ring->completed = (void *)(cq + params.cq_off.cqes);
	return 0;
}

void close_ring(struct ring *ring)
{
	munmap(ring->sq, RING_SIZE);
	munmap(ring->entries, RING_SIZE);
	munmap(ring->cq, RING_SIZE);
	close(ring->fd);
}

int await_ring(struct ring *ring)
{
	int result;

	while (*ring->cq_head == atomic_load((_Atomic unsigned *)ring->cq_tail))
		if (syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
		    0)
			return failed();
	result = ring->completed[*ring->cq_head & *ring->cq_mask].res;
	atomic_fetch_add((_Atomic unsigned *)ring->cq_head, 1);
	return result;
}

int ask_ring(struct ring *ring, const struct io_uring_sqe *entry)
{
	unsigned at = *ring->tail & *ring->mask;
	unsigned wake = ring->flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0;

	ring->entries[at] = *entry;
	ring->array[at] = at;
	atomic_fetch_add((_Atomic unsigned *)ring->tail, 1);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 0, wake, NULL, 0) < 0)
		return failed();
	return await_ring(ring);
}
