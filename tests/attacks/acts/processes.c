/* Processes of another domain: their memory, descriptors, and controls. */
#include "acts.h"
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void keep(void)
{
	keeping();
	for (;;)
		pause();
}

static int tells_held(const char *text, long length)
{
	if (length < 0)
		return failed();
	return strncmp(text, TEXT_OF_SECRET, strlen(TEXT_OF_SECRET)) ? MISSED : REACHED;
}

static int memory_read(void)
{
	char text[16] = "";
	struct iovec here = {text, sizeof text}, there = {held, sizeof held};

	return tells_held(text, process_vm_readv(keeper(), &here, 1, &there, 1, 0));
}

static int memory_written(void)
{
	struct iovec here = {"CHANGED", 7}, there = {held, 7};

	return outcome(process_vm_writev(keeper(), &here, 1, &there, 1, 0));
}

static int open_of_keeper(const char *entry, int flags)
{
	char name[64];

	snprintf(name, sizeof name, "/proc/%d/%s", keeper(), entry);
	return open(name, flags | O_CLOEXEC);
}

static int memory_by_proc(void)
{
	char text[16] = "";
	int memory = open_of_keeper("mem", O_RDWR);

	if (memory < 0)
		return failed();
	return tells_held(text, pread(memory, text, sizeof text, (off_t)(uintptr_t)held));
}

/* A directory of the process's is opened by nobody, but a file in it. */
static int memory_by_task(void)
{
	char name[64];

	snprintf(name, sizeof name, "/proc/%d/task/%d/mem", keeper(), keeper());
	return outcome(open(name, O_RDONLY));
}

static int root_by_proc(void)
{
	return tells_secret(open_of_keeper("root" SECRET, O_RDONLY));
}

static int program_by_proc(void)
{
	return outcome(open_of_keeper("exe", O_RDONLY));
}

static int environment_by_proc(void)
{
	return outcome(open_of_keeper("environ", O_RDONLY));
}

static int adjusted_by_proc(void)
{
	int file = open_of_keeper("oom_score_adj", O_WRONLY);

	return file < 0 ? failed() : outcome(write(file, "1000", 4));
}

static int seized(void)
{
	return outcome(ptrace(PTRACE_SEIZE, keeper(), 0, 0));
}

static int compared(void)
{
	return outcome(syscall(SYS_kcmp, getpid(), keeper(), KCMP_FILES, 0, 0));
}

static int open_keeper(void)
{
	return syscall(SYS_pidfd_open, keeper(), 0);
}

static int signalled_by_descriptor(void)
{
	return outcome(syscall(SYS_pidfd_send_signal, open_keeper(), SIGTERM, NULL, 0));
}

static int signalled_as_thread(void)
{
	return outcome(syscall(SYS_tgkill, keeper(), keeper(), SIGTERM));
}

static int signalled_with_value(void)
{
	return outcome(sigqueue(keeper(), SIGTERM, (union sigval){.sival_int = 1}));
}

static int advised(void)
{
	struct iovec page = {(void *)((uintptr_t)held & ~4095UL), 4096};

	return outcome(syscall(SYS_process_madvise, open_keeper(), &page, 1, MADV_COLD, 0));
}

static int pages_moved(void)
{
	void *page = held;
	int node = 0, status;

	return outcome(syscall(SYS_move_pages, keeper(), 1UL, &page, &node, &status, 0));
}

static int robust_list(void)
{
	void *head;
	size_t length;

	return outcome(syscall(SYS_get_robust_list, keeper(), &head, &length));
}

static int bound_to_processor(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	return outcome(sched_setaffinity(keeper(), sizeof first, &first));
}

static int scheduled(void)
{
	struct sched_param none = {};

	return outcome(sched_setscheduler(keeper(), SCHED_IDLE, &none));
}

static int disk_priority(void)
{
	return outcome(syscall(SYS_ioprio_set, 1, keeper(), 3 << 13));
}

static int limited(void)
{
	struct rlimit none = {};

	return outcome(prlimit(keeper(), RLIMIT_NOFILE, &none, NULL));
}

static void keep_apart(void)
{
	must(!unshare(CLONE_NEWUTS), "unshare");
	keep();
}

static int namespaces_entered(void)
{
	return outcome(setns(open_keeper(), CLONE_NEWUTS));
}

static int namespace_by_ioctl(void)
{
	/* PIDFD_GET_UTS_NAMESPACE of 6.11 */
	return outcome(syscall(SYS_ioctl, open_keeper(), 0xff0a, 0));
}

static int counted(void)
{
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.size = sizeof event};

	return outcome(syscall(SYS_perf_event_open, &event, keeper(), -1, -1, 0));
}

static int mapped_by_perf(void)
{
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.size = sizeof event,
					.sample_type = PERF_SAMPLE_TID,
					.mmap = 1};

	return outcome(syscall(SYS_perf_event_open, &event, -1, 0, -1, 0));
}

/* The terminal's own signals: the holder of the other end interrupts the processes on it. */
static void keep_at_terminal(void)
{
	int terminal;

	signal(SIGINT, exit);
	keeping();
	setsid();
	terminal = receive_descriptor(meet_intruder());
	must(terminal >= 0 && !syscall(SYS_ioctl, terminal, 0x540e, 0), "take the terminal");
	for (;;)
		pause();
}

static int interrupted_by_terminal(void)
{
	int other, meeting = meet_keeper(), terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY),
		   zero = 0;

	if (terminal < 0 || syscall(SYS_ioctl, terminal, 0x40045431, &zero))
		return failed();
	other = syscall(SYS_ioctl, terminal, 0x5441, O_RDWR | O_NOCTTY);
	if (other < 0 || send_descriptor(meeting, other) < 0)
		return failed();
	usleep(300000);
	if (write(terminal, "\3", 1) != 1)
		return failed();
	usleep(300000);
	return read(meeting, &zero, 1) == 0 ? REACHED : MISSED;
}

const struct act process_acts[] = {
	{"memory_read", memory_read, .keeper = keep},
	{"memory_written", memory_written, .keeper = keep},
	{"memory_by_proc", memory_by_proc, .keeper = keep},
	{"memory_by_task", memory_by_task, .keeper = keep},
	{"root_by_proc", root_by_proc, .keeper = keep},
	{"program_by_proc", program_by_proc, .keeper = keep},
	{"environment_by_proc", environment_by_proc, .keeper = keep},
	{"adjusted_by_proc", adjusted_by_proc, .keeper = keep},
	{"seized", seized, .keeper = keep},
	{"compared", compared, .keeper = keep},
	{"signalled_by_descriptor", signalled_by_descriptor, .keeper = keep},
	{"signalled_as_thread", signalled_as_thread, .keeper = keep},
	{"signalled_with_value", signalled_with_value, .keeper = keep},
	{"advised", advised, .keeper = keep},
	{"pages_moved", pages_moved, .keeper = keep},
	{"robust_list", robust_list, .keeper = keep},
	{"bound_to_processor", bound_to_processor, .keeper = keep},
	{"scheduled", scheduled, .keeper = keep},
	{"disk_priority", disk_priority, .keeper = keep},
	{"limited", limited, .keeper = keep},
	{"namespaces_entered", namespaces_entered, .keeper = keep_apart},
	{"namespace_by_ioctl", namespace_by_ioctl, .keeper = keep_apart},
	{"counted", counted, .keeper = keep},
	{"mapped_by_perf", mapped_by_perf},
	{"interrupted_by_terminal", interrupted_by_terminal, .keeper = keep_at_terminal},
	{},
};
