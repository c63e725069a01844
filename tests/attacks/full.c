/* Takes credentials until none are left, and does things that need one.
 *
 *   full parent COUNT   children give it other session keyrings, each with a credential that a file
 *                       of its keeps, until the input ends; prints how many it got
 *   full ids            what happens to processes that would change their ids, by each call
 *   full root UID       as root with this real uid: gives it up
 *   full fork COMMAND   when a fork has failed, executes a command
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two children with session keyrings of their own; a dead one gives none. */
static int keyed(int *ask, int *answer)
{
	int asked[2], answered[2], result;
	char byte;

	if (pipe(asked) || pipe(answered))
		return -1;
	*ask = asked[1];
	*answer = answered[0];
	if (fork())
		return 0;
	close(asked[1]);
	result = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ? errno : 0;
	while (read(asked[0], &byte, 1) == 1) {
		if (!result && syscall(SYS_keyctl, KEYCTL_SESSION_TO_PARENT))
			result = errno;
		if (write(answered[1], &result, sizeof result) != sizeof result)
			break;
		result = 0;
	}
	_exit(0);
}

static int as_parent(int count)
{
	int ask[2], answer[2], came = 0, refused = 0, why = 0, result;
	char end;

	if (keyed(&ask[0], &answer[0]) || keyed(&ask[1], &answer[1]))
		return 2;
	for (int i = 0; i < count; i++) {
		if (write(ask[i & 1], "", 1) != 1 ||
		    read(answer[i & 1], &result, sizeof result) != sizeof result)
			return 2;
		if (!result && open("/dev/null", O_RDONLY) >= 0) {
			came++;
			continue;
		}
		/* Freed ones become available after a while. */
		if (!refused++)
			usleep(200000);
		why = result ? result : errno;
	}
	printf("%d came, %d refused: %s\n", came, refused, strerror(why));
	fflush(stdout);
	while (read(0, &end, 1) > 0)
		;
	return 0;
}

#define MOST 1000

static pid_t children[MOST];

/* Forks as many children as possible; returns their number. */
static int fill(void)
{
	int count = 0;

	for (int tries = 0; tries < 2; tries++, usleep(200000))
		while (count < MOST && (children[count] = fork()) >= 0)
			if (!children[count++])
				for (;;)
					pause();
	return count;
}

static void end(int count)
{
	for (int i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

/* All calls that change ids or capabilities, of x86-64, and with I386 of that. */
#define I386 0x10000
static const int calls[] = {SYS_setuid,	   SYS_setgid,	  SYS_setreuid, SYS_setregid, SYS_setgroups,
			    SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_capset,
			    I386 + 23,	   I386 + 46,	  I386 + 70,	I386 + 71,    I386 + 81,
			    I386 + 138,	   I386 + 139,	  I386 + 164,	I386 + 170,   I386 + 185,
			    I386 + 203,	   I386 + 204,	  I386 + 206,	I386 + 208,   I386 + 210,
			    I386 + 213,	   I386 + 214,	  I386 + 215,	I386 + 216,   SYS_prctl};

/* In the program, whose addresses have 32 bits. */
static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
static struct __user_cap_data_struct nothing[2];

static int give_up(int call)
{
	long first = 1, second = 1, result;

	if (call == SYS_capset || call == I386 + 185) {
		first = (long)&header;
		second = (long)nothing;
	} else if (call == SYS_setgroups || call == I386 + 81 || call == I386 + 206) {
		first = second = 0;
	} else if (call == SYS_prctl) {
		first = PR_SET_KEEPCAPS;
	}
	if (call < I386)
		return syscall(call, first, second, 1) ? errno : 0;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"((long)call - I386), "b"(first), "c"(second), "d"(1l)
			 : "memory");
	return -result;
}

/* One child ends, and another takes its place. */
static int become_none(void)
{
	int killed = 0, status, count = fill(), number = sizeof calls / sizeof *calls;

	for (int i = 0; i < number; i++) {
		pid_t child;

		if (!i) {
			kill(children[--count], SIGKILL);
			wait(NULL);
		}
		while ((child = fork()) < 0)
			usleep(10000);
		if (!child)
			_exit(give_up(calls[i]));
		if (waitpid(child, &status, 0) != child)
			return 2;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			killed++;
		else
			printf("%s%d: %s\n", calls[i] < I386 ? "" : "i386 ", calls[i] & 0xffff,
			       strerror(WEXITSTATUS(status)));
	}
	printf("%d children, %d of %d calls killed\n", count, killed, number);
	end(count);
	return 0;
}

static int remain_root(const char *uid)
{
	int result = setresuid(atoi(uid), 0, 0), count = fill();

	if (!result)
		result = setgroups(0, NULL) || setresgid(0, 0, 0) || setresuid(0, 0, 0);
	printf("%d children, root again: %s\n", count, result ? strerror(errno) : "done");
	end(count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "parent"))
		return as_parent(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "root"))
		return remain_root(argv[2]);
	if (argc >= 3 && !strcmp(argv[1], "fork")) {
		end(fill());
		sleep(1);
		execvp(argv[2], argv + 2);
	}
	return argc == 2 && !strcmp(argv[1], "ids") ? become_none() : 2;
}
