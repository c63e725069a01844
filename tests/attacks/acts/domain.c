/* Programs in a domain, under the kernel's SELinux and under Tollgate. */
#include "acts.h"
#include <tollgate.h>

#define READY 3 /* the descriptor by which a keeper tells that it is ready */

void enter(const char *domain, const char *program, const char *part, const char *name)
{
	char context[128];

	snprintf(context, sizeof context, "system_u:system_r:%s:s0", domain);
	if (!access("/sys/fs/selinux/enforce", F_OK))
		must(!append("/proc/self/attr/exec", context), "/proc/self/attr/exec");
	else
		must(!tg_setexeccon(context), tg_error());
	execl(program, program, part, name, NULL);
	must(0, program);
}

void start_keeper(const char *program, const char *name)
{
	int ready[2];
	char number[16] = "";

	must(!pipe(ready), "pipe");
	if (!fork()) {
		dup2(ready[1], READY);
		for (int other = 0; other < 2; other++)
			if (ready[other] != READY)
				close(ready[other]);
		enter("keeper", program, "keep", name);
	}
	close(ready[1]);
	must(read(ready[0], number, sizeof number - 1) > 0, "the keeper did not start");
	close(ready[0]);
	setenv("KEEPER", number, 1);
}

void keeping(void)
{
	int secret = open(SECRET, O_RDONLY | O_CLOEXEC);

	must(secret >= 0 && read(secret, held, sizeof held - 1) > 0, "the keeper's secret");
	close(secret);
	must(dprintf(READY, "%d", getpid()) > 0, "tell that the keeper is ready");
	close(READY);
}
