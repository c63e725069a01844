// SPDX-License-Identifier: MIT
/*
 * `acts user ACT...` becomes user 1000 and executes $PROGRAM, or else /bin/privileged, which has
 * this content and a set-user-id bit, with the acts; `acts wait FIFO` does the act that the FIFO
 * says as it is. Each act is a call that a hijacker wants, or a way to a shell by which a process
 * might lose its guard.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *mark;

/* A shell that leaves a mark. Returns only if it is denied. */
static int shell(void)
{
	char line[64];

	snprintf(line, sizeof line, "echo > /marks/%s", mark);
	return execl("/bin/busybox", "sh", "-c", line, (char *)0);
}

static int in_child(int (*act)(void))
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(act() ? errno : 0);
	waitpid(child, &status, 0);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static int opens(void)
{
	return open("/guarded/file", O_WRONLY);
}
static int truncates(void)
{
	return truncate("/guarded/file", 0);
}
static int unlinks(void)
{
	return unlink("/guarded/gone");
}
static int renames(void)
{
	return rename("/guarded/moved", "/guarded/renamed");
}
static int links(void)
{
	return link("/guarded/file", "/guarded/link");
}
static int symlinks(void)
{
	return symlink("/etc", "/guarded/symlink");
}
static int makes_fifo(void)
{
	return mkfifo("/guarded/fifo", 0600);
}
static int chowns(void)
{
	return chown("/guarded/file", 1000, 1000);
}
static int chmods(void)
{
	return chmod("/guarded/file", 04755);
}
/* $FILE of the guarded folder. */
static const char *another(void)
{
	static char path[320];

	snprintf(path, sizeof path, "/guarded/%s", getenv("FILE"));
	return path;
}
static int opens_another(void)
{
	return open(another(), O_WRONLY);
}
static int makes_another(void)
{
	return open(another(), O_WRONLY | O_CREAT, 0644);
}
static int moves(void)
{
	return rename("/guarded/moved", another());
}
/* Without a name: with bits, and without, which no rule is needed for. */
static int makes_unnamed_program(void)
{
	return open("/guarded", O_TMPFILE | O_RDWR, 04755);
}
static int makes_unnamed(void)
{
	return open("/guarded", O_TMPFILE | O_RDWR, 0600);
}
static int names_unnamed(void)
{
	int file = makes_unnamed();

	return linkat(file, "", AT_FDCWD, "/guarded/named", AT_EMPTY_PATH);
}
static int mounts(void)
{
	return mount("none", "/guarded/mount", "tmpfs", 0, 0);
}
static int sets_group(void)
{
	return setresgid(5, 5, 5);
}
static int sets_groups(void)
{
	return setgroups(1, &(gid_t){5});
}
static int sets_user(void)
{
	return setresuid(0, 0, 0);
}
static int makes_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}
static int sets_capability(void)
{
	unsigned value[5] = {0x02000000, 1};

	return setxattr("/guarded/file", "security.capability", value, sizeof value, 0);
}
static int loads_module(void)
{
	static char junk[4096];

	/* It is none: whether loading begins is what is asked. */
	return syscall(SYS_init_module, junk, sizeof junk, "") && errno == ENOEXEC ? 0 : -1;
}
static int makes_map(void)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
}
static int traces(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), 0, 0);
}
/* The same, without ptrace(2): all of this program's processes have the word at one address. */
static int pokes(void)
{
	static char word;
	struct iovec here = {&word, 1}, there = here;

	return process_vm_writev(getppid(), &here, 1, &there, 1, 0) == 1 ? 0 : -1;
}
static int starts_poller(void)
{
	unsigned parameters[30] = {[2] = 2}; /* IORING_SETUP_SQPOLL */

	return syscall(SYS_io_uring_setup, 1, parameters);
}
static int watches_faults(void)
{
	return syscall(SYS_userfaultfd, 0);
}
static int maps_code(void)
{
	return mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}
static int protects_code(void)
{
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*(char *)page = 1;
	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
static int inherits(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].inheritable |= 1 << CAP_NET_RAW;
	return syscall(SYS_capset, &header, data);
}
static int unpins(void)
{
	return unlink("/sys/fs/bpf/tollgate-guard/links/guard_exec");
}
static int unmounts(void)
{
	return umount2("/sys/fs/bpf", MNT_DETACH);
}

/* Ways to a shell. */
static int forks_twice(void)
{
	return in_child(shell);
}
static int twice(void)
{
	return in_child(forks_twice);
}
static int once(void)
{
	return in_child(shell);
}
static int leaves(void)
{
	setsid();
	return shell();
}
static int session(void)
{
	return in_child(leaves);
}
static int vforks(void)
{
	int status;
	volatile int failed = 0;
	pid_t child = vfork();

	if (!child) {
		shell();
		failed = errno;
		_exit(1);
	}
	waitpid(child, &status, 0);
	errno = failed;
	return failed ? -1 : 0;
}
static void *in_thread(void *unused)
{
	(void)unused;
	shell();
	return (void *)(long)errno;
}
static int thread(void)
{
	pthread_t other;
	void *failed;

	if (pthread_create(&other, 0, in_thread, 0) || pthread_join(other, &failed))
		return -1;
	errno = (long)failed;
	return -1;
}
static int copied(const char *from, int to)
{
	char buffer[65536];
	ssize_t got;
	int file = open(from, O_RDONLY);

	while ((got = read(file, buffer, sizeof buffer)) > 0)
		if (write(to, buffer, got) != got)
			return -1;
	return close(file);
}
static int memory(void)
{
	int file = memfd_create("sh", MFD_CLOEXEC);
	char line[64];

	snprintf(line, sizeof line, "echo > /marks/%s", mark);
	/* Another content than that of any program. */
	if (copied("/bin/busybox", file) || write(file, "x", 1) != 1)
		return -1;
	return syscall(SYS_execveat, file, "", (char *[]){"sh", "-c", line, 0}, (char *[]){0},
		       AT_EMPTY_PATH);
}
/* The user has made a program, opened and deleted it. */
static int deleted(void)
{
	char line[64];

	snprintf(line, sizeof line, "echo > /marks/%s", mark);
	return syscall(SYS_execveat, atoi(getenv("DELETED")), "", (char *[]){"sh", "-c", line, 0},
		       (char *[]){0}, AT_EMPTY_PATH);
}
/* Traces a child, which asks for it: ptrace(2) checks nothing then. */
static int traced(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (!ptrace(PTRACE_TRACEME, 0, 0, 0))
			shell();
		_exit(errno);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, child, 0, 0);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}
static int script(void)
{
	return execl("/bin/script", "script", mark, (char *)0);
}
static int loader(void)
{
	return execl("/bin/ld.so", "ld.so", "/bin/dynamic", mark, (char *)0);
}
/* The caller is what it was at its exec, whatever the file is now. */
static int itself(void)
{
	return execl("/proc/self/exe", "privileged", "shell", (char *)0);
}
static int failing(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1u << CAP_SYS_ADMIN | 1u << CAP_SYS_RESOURCE);
	if (syscall(SYS_capset, &header, data) || setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}))
		return -1;
	for (int i = 0; i < 10; i++)
		if (fork() != -1)
			return -1;
	return shell();
}
/* Reads what its user has written, and then executes something. */
static int misled(void)
{
	char text[8];
	int file = open("/users", O_RDONLY);

	return read(file, text, sizeof text) < 0 ? -1 : shell();
}

/* Receives from a network, and then executes something. */
static int received(void)
{
	struct sockaddr_in own = {.sin_family = AF_INET,
				  .sin_port = htons(4000),
				  .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
	char text[8];

	if (bind(socket_, (void *)&own, sizeof own) || connect(socket_, (void *)&own, sizeof own) ||
	    send(socket_, "x", 1, 0) != 1)
		return -1;
	return recv(socket_, text, sizeof text, 0) != 1 ? -1 : shell();
}
/* Changes its identity, and then executes something. */
static int changed(void)
{
	return sets_user() ? -1 : shell();
}

/* The least time of many calls, which is counted instructions where the clock is the processor. */
static int costs(void)
{
	long least = 1000000000;

	for (int i = 0; i < 300; i++) {
		struct timespec before, after;

		clock_gettime(CLOCK_MONOTONIC, &before);
		int file = opens();

		clock_gettime(CLOCK_MONOTONIC, &after);
		if (file >= 0)
			return -1;
		long took = after.tv_nsec - before.tv_nsec;

		if (took > 0 && took < least)
			least = took;
	}
	printf("least %ld\n", least);
	return 0;
}

/* A program that the user may change gets into this one's memory. */
static int maps_users_code(void)
{
	int file = open("/users", O_RDONLY);

	return mmap(0, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED ? -1 : 0;
}

/* In a user namespace of the user's, where user 0 still owns what is root's. */
static int namespaced(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%s/ns/user", getenv("NAMESPACE"));
	if (setns(open(path, O_RDONLY), CLONE_NEWUSER))
		return -1;
	return shell();
}

/* Makes a user namespace for as long as this process lives. */
static void make_users_namespace(void)
{
	int made[2];
	char number[16];
	pid_t child;

	if (pipe(made))
		return;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER) || write(made[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(made[1]);
	if (read(made[0], number, 1) != 1)
		fprintf(stderr, "acts: no user namespace\n");
	close(made[0]);
	snprintf(number, sizeof number, "%d", child);
	setenv("NAMESPACE", number, 1);
}

/* Makes the program of `deleted`, which is open from then on. */
static void delete_users_program(void)
{
	char number[16];
	int to = open("/marks/program", O_CREAT | O_WRONLY, 0755);

	if (copied("/bin/busybox", to) || write(to, "x", 1) != 1 || close(to))
		fprintf(stderr, "acts: no program of the user\n");
	snprintf(number, sizeof number, "%d", open("/marks/program", O_RDONLY));
	unlink("/marks/program");
	setenv("DELETED", number, 1);
}

static const struct act {
	const char *name;
	int (*act)(void);
} acts[] = {
	{"write", opens},
	{"another", opens_another},
	{"make", makes_another},
	{"move", moves},
	{"truncate", truncates},
	{"unlink", unlinks},
	{"rename", renames},
	{"link", links},
	{"symlink", symlinks},
	{"mknod", makes_fifo},
	{"chown", chowns},
	{"chmod", chmods},
	{"unnamed-program", makes_unnamed_program},
	{"unnamed", makes_unnamed},
	{"named", names_unnamed},
	{"mount", mounts},
	{"setgid", sets_group},
	{"setgroups", sets_groups},
	{"setuid", sets_user},
	{"setcap", sets_capability},
	{"module", loads_module},
	{"bpf", makes_map},
	{"ptrace", traces},
	{"poke", pokes},
	{"io_uring", starts_poller},
	{"userfaultfd", watches_faults},
	{"namespace", makes_namespace},
	{"memory", maps_code},
	{"mprotect", protects_code},
	{"capset", inherits},
	{"foreign", maps_users_code},
	{"unpin", unpins},
	{"umount", unmounts},
	{"shell", shell},
	{"fork", once},
	{"twice", twice},
	{"session", session},
	{"vfork", vforks},
	{"thread", thread},
	{"memfd", memory},
	{"deleted", deleted},
	{"traced", traced},
	{"script", script},
	{"loader", loader},
	{"itself", itself},
	{"failing", failing},
	{"namespaced", namespaced},
	{"misled", misled},
	{"received", received},
	{"changed", changed},
	{"cost", costs},
};

static void do_act(const char *name)
{
	for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++) {
		if (strcmp(acts[i].name, name))
			continue;
		mark = name;
		if (acts[i].act() < 0)
			printf("%s: %s\n", name, strerror(errno));
		else
			printf("%s: done\n", name);
		return;
	}
	printf("%s: no such act\n", name);
}

int main(int argc, char **argv)
{
	char line[64] = "";
	int status;

	if (argc > 2 && !strcmp(argv[1], "user")) {
		const char *program = getenv("PROGRAM");

		argv[1] = "privileged";
		if (setgroups(0, 0) || setgid(1000) || setuid(1000))
			return 2;
		make_users_namespace();
		if (!strcmp(argv[2], "deleted"))
			delete_users_program();
		execv(program ? program : "/bin/privileged", argv + 1);
		return 2;
	}
	if (argc > 2 && !strcmp(argv[1], "wait")) {
		FILE *fifo = fopen(argv[2], "r");

		if (!fgets(line, sizeof line, fifo))
			return 2;
		line[strcspn(line, "\n")] = 0;
		do_act(line);
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		/* Each by a process of its own, because some acts change it. */
		pid_t child = fork();

		if (!child) {
			do_act(argv[i]);
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, &status, 0);
		if (WIFSIGNALED(status))
			printf("%s: killed\n", argv[i]);
		fflush(stdout);
	}
	return 0;
}
