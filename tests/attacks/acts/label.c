/* label CONTEXT PATH...: labels files, under the kernel's SELinux. */
#include "acts.h"
#include <sys/xattr.h>

int main(int count, char **words)
{
	for (int word = 2; word < count; word++)
		must(!setxattr(words[word], "security.selinux", words[1], strlen(words[1]), 0),
		     words[word]);
	return 0;
}
