/* Processes. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

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
