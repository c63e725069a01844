/* Moves credentials from one share to another: children change their identity and stay, until the
 * input ends. Prints the results.
 *
 *   moves COUNT uid UID         become another user
 *   moves COUNT exec CONTEXT    execute a program in another domain, and one there: the first is
 *                               kept open by whom it was executed by
 *   moves COUNT setcon CONTEXT  enter another domain
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tollgate.h>
#include <unistd.h>

#define TELL 3 /* a child that has changed writes to it */
#define STAY 4 /* and ends when this does */

static int stay(void)
{
	char end;

	if (write(TELL, "", 1) != 1)
		return 2;
	close(TELL);
	while (read(STAY, &end, 1) > 0)
		;
	return 0;
}

/* Ends with the number of the error. */
static int move(char **how)
{
	int result = -1;

	if (!strcmp(how[0], "uid"))
		result = setresuid(atoi(how[1]), -1, -1);
	else if (!strcmp(how[0], "setcon"))
		result = tg_setcon(how[1]);
	else if (!tg_setexeccon(how[1]))
		execl("/proc/self/exe", "moves", "again", NULL);
	return result ? errno : stay();
}

/* Whether the child has changed, or how it has ended. */
static int wait_for(pid_t child, int told, int *status)
{
	struct pollfd come = {.fd = told, .events = POLLIN};
	char byte;

	for (;;) {
		if (poll(&come, 1, 1) > 0)
			return read(told, &byte, 1) == 1;
		if (waitpid(child, status, WNOHANG) == child)
			return 0;
	}
}

static void become(char **how, int told, int ends)
{
	if (dup2(told, 10) < 0 || dup2(ends, 11) < 0 || dup2(10, TELL) < 0 || dup2(11, STAY) < 0)
		_exit(2);
	_exit(move(how));
}

int main(int argc, char **argv)
{
	int told[2], ends[2], come = 0, killed = 0, refused = 0, why = 0;
	char end;

	if (argc == 1)
		return stay();
	if (argc == 2) {
		execl("/proc/self/exe", "moves", NULL);
		return errno;
	}
	if (pipe(told) || pipe(ends) || fcntl(ends[1], F_SETFD, FD_CLOEXEC))
		return 2;
	for (int left = atoi(argv[1]); left; left--) {
		int status = 0;
		pid_t child = fork();

		if (!child) {
			close(ends[1]);
			become(argv + 2, told[1], ends[0]);
		}
		if (child < 0) {
			refused++;
			why = errno;
		} else if (wait_for(child, told[0], &status)) {
			come++;
		} else if (WIFSIGNALED(status)) {
			killed++;
		} else {
			refused++;
			why = WEXITSTATUS(status);
		}
		/* Freed ones become available after a while. */
		if (killed + refused == 1)
			usleep(200000);
	}
	printf("%d came, %d killed, %d refused: %s\n", come, killed, refused, strerror(why));
	fflush(stdout);
	while (read(0, &end, 1) > 0)
		;
	close(ends[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
