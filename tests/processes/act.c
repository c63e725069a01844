/* Acts that no command of a small guest does; each prints one line with its result. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *outcome(long result)
{
	return result < 0 ? strerrorname_np(errno) : "done";
}

static int reads(const char *path)
{
	int file = open(path, O_RDONLY);

	if (file >= 0)
		close(file);
	return file;
}

static void *execute(void *words)
{
	char **program = words;

	execv(program[0], program);
	printf("thread %s\n", outcome(-1));
	exit(1);
}

/* Executes a program in a thread that is not the first. */
static void thread(char **words)
{
	pthread_t other;

	pthread_create(&other, NULL, execute, words);
	pthread_join(other, NULL);
}

/* How many of this many descendants could read the file; each forks another before it ends. */
static void storm(int count, const char *path)
{
	int pipes[2], granted = 0, denied = 0;
	char answer;

	if (pipe(pipes))
		exit(1);
	for (int i = 0; i < count; i++) {
		if (fork())
			continue;
		answer = reads(path) >= 0 ? 'g' : errno == EACCES ? 'd' : '?';
		if (write(pipes[1], &answer, 1) != 1)
			_exit(1);
		if (!fork()) {
			answer = reads(path) >= 0 ? 'g' : errno == EACCES ? 'd' : '?';
			_exit(write(pipes[1], &answer, 1) != 1);
		}
		_exit(0);
	}
	close(pipes[1]);
	while (read(pipes[0], &answer, 1) == 1) {
		granted += answer == 'g';
		denied += answer == 'd';
	}
	while (wait(NULL) > 0)
		;
	printf("storm granted %d denied %d\n", granted, denied);
}

/* Of how many of the kernel's BPF objects it gets a descriptor. */
static void objects(const char *name, int next, int open)
{
	union bpf_attr attr = {};
	int got = 0, denied = 0;

	while (!syscall(SYS_bpf, next, &attr, sizeof attr)) {
		unsigned id = attr.next_id;
		union bpf_attr by = {};
		long fd;

		by.map_id = id;
		fd = syscall(SYS_bpf, open, &by, sizeof by);
		if (fd >= 0)
			close(fd);
		got += fd >= 0;
		denied += fd < 0 && errno == EACCES;
		memset(&attr, 0, sizeof attr);
		attr.start_id = id;
	}
	printf("%s opened %d denied %d\n", name, got, denied);
}

/* Creates a ring with a personality, which is the caller's, and passes it to a program. */
static void ring(char **words)
{
	struct io_uring_params params = {};
	int fd = syscall(SYS_io_uring_setup, 4, &params);
	int personality =
		fd < 0 ? -1 : syscall(SYS_io_uring_register, fd, IORING_REGISTER_PERSONALITY, 0, 0);
	char number[16], own[16];

	if (personality < 0) {
		printf("ring %s\n", outcome(-1));
		return;
	}
	snprintf(number, sizeof number, "%d", fd);
	snprintf(own, sizeof own, "%d", personality);
	setenv("RING", number, 1);
	setenv("PERSONALITY", own, 1);
	fcntl(fd, F_SETFD, 0);
	execvp(words[0], words);
	printf("ring %s\n", outcome(-1));
}

/* Opens a file by that ring, with its own credentials or those of the personality. */
static void open_by_ring(const char *path, int personality)
{
	int fd = atoi(getenv("RING"));
	size_t size = 4096;
	char *sq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	struct io_uring_sqe *sqe =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);

	if (sq == MAP_FAILED || sqe == MAP_FAILED) {
		printf("open_by_ring %s\n", outcome(-1));
		return;
	}
	/* The offsets are the same for every ring of this size: sq head 0, tail 64; see params. */
	struct io_uring_params params = {};
	int other = syscall(SYS_io_uring_setup, 4, &params);
	unsigned *tail = (void *)(sq + params.sq_off.tail),
		 *mask = (void *)(sq + params.sq_off.ring_mask);
	unsigned *array = (void *)(sq + params.sq_off.array),
		 *cq_head = (void *)(sq + params.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(sq + params.cq_off.cqes);
	unsigned at = *tail & *mask;

	close(other);
	memset(&sqe[at], 0, sizeof sqe[at]);
	sqe[at].opcode = IORING_OP_OPENAT;
	sqe[at].fd = AT_FDCWD;
	sqe[at].addr = (unsigned long)path;
	sqe[at].open_flags = O_RDONLY;
	sqe[at].personality = personality;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) {
		printf("open_by_ring %s\n", outcome(-1));
		return;
	}
	int result = cqes[*cq_head & *mask].res;

	errno = -result;
	printf("open_by_ring %s\n", outcome(result));
}

/* The SID of a context, if it has one. */
static long sid_of(const char *context)
{
	FILE *contexts = fopen("/run/tollgate/contexts", "r");
	char known[256];
	long sid, found = -1;

	while (found < 0 && contexts && fscanf(contexts, "%ld %255s", &sid, known) == 2)
		if (!strcmp(known, context))
			found = sid;
	if (contexts)
		fclose(contexts);
	return found;
}

#define TG_PRCTL 0x54474154 /* enforcer.h */

/* Enters a domain with credentials of its own, unless a file was opened with them before. */
static int enter(const char *context, const char *path)
{
	long sid = sid_of(context);

	if (prctl(PR_SET_KEEPCAPS, 0l, 0l, 0l, 0l) || (path && open(path, O_RDONLY) < 0))
		return -1;
	return prctl(TG_PRCTL, 1l, sid, 0l, 0l) && errno == EALREADY ? 0 : -1;
}

static void *enter_and_read(void *words)
{
	char **word = words;

	printf("enter %s\n", outcome(enter(word[0], NULL)));
	printf("read %s\n", outcome(reads(word[1])));
	return NULL;
}

/* A thread that is not the first enters a domain and reads; then the first reads, about which the
 * caches have no entry any more. */
static void mixed(char **words)
{
	pthread_t other;

	pthread_create(&other, NULL, enter_and_read, words);
	pthread_join(other, NULL);
	if (!system("tollgate mode enforcing"))
		printf("read %s\n", outcome(reads(words[1])));
}

/* Sets a file's label as a process with the number of an ended one. */
static void impersonate(pid_t number, const char *path)
{
	struct clone_args as = {
		.exit_signal = SIGCHLD, .set_tid = (unsigned long)&number, .set_tid_size = 1};
	int child = syscall(SYS_clone3, &as, sizeof as);

	if (child < 0)
		printf("impersonate nobody %s\n", outcome(child));
	if (child)
		waitpid(child, NULL, 0);
	else
		printf("impersonate %s\n",
		       outcome(setxattr(path, "security.bpf.tollgate", "u:r:t:s0", 9, 0)));
}

int main(int count, char **words)
{
	const char *act = count > 1 ? words[1] : "";
	const char *object = count > 2 ? words[2] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(act, "read"))
		printf("read %s\n", outcome(reads(object)));
	else if (!strcmp(act, "thread"))
		thread(words + 2);
	else if (!strcmp(act, "secure"))
		printf("secure %lu\n", getauxval(AT_SECURE));
	else if (!strcmp(act, "storm"))
		storm(atoi(object), words[3]);
	else if (!strcmp(act, "maps"))
		objects("maps", BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID);
	else if (!strcmp(act, "programs"))
		objects("programs", BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID);
	else if (!strcmp(act, "trace"))
		printf("trace %s\n", outcome(ptrace(PTRACE_SEIZE, atoi(object), 0, 0)));
	else if (!strcmp(act, "kill"))
		printf("kill %s\n", outcome(kill(atoi(object), SIGURG)));
	else if (!strcmp(act, "limit"))
		printf("limit %s\n",
		       outcome(syscall(SYS_prlimit64, atoi(object), 4, &(long[2]){0, -1}, NULL)));
	else if (!strcmp(act, "mixed"))
		mixed(words + 2);
	else if (!strcmp(act, "enter"))
		printf("enter %s\n", outcome(enter(object, words[3])));
	else if (!strcmp(act, "impersonate"))
		impersonate(atoi(object), words[3]);
	else if (!strcmp(act, "ring"))
		ring(words + 2);
	else if (!strcmp(act, "open_by_ring"))
		open_by_ring(object, count > 3 ? atoi(getenv("PERSONALITY")) : 0);
	else
		return 2;
	return 0;
}
