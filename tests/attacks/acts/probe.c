/*
 * The program that is started in a roundabout way: its exit status shows whether it could read the
 * secret, and so does a note, because nobody waits for programs that the kernel starts.
 */
#include "acts.h"

int main(void)
{
	int result = reads_secret(SECRET);

	if (result < 0)
		return -result;
	close(open(NOTE, O_WRONLY | O_CREAT, 0666));
	return result == REACHED ? PROBED : 0;
}
