/* user UID COMMAND...: runs a command as a user, with the group of that number. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int user = argc > 2 ? atoi(argv[1]) : 0;

	if (!user || setgroups(0, NULL) || setgid(user) || setuid(user)) {
		perror("user");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 126;
}
