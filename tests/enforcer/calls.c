/* SPDX-License-Identifier: MIT */
/* A program against the C library: makes the call of its first argument, with the others. */
#include <tollgate.h>

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int told(const char *what, int result, char *context)
{
	if (result < 0) {
		printf("%s: errno %d: %s\n", what, errno, tg_error());
		return 1;
	}
	printf("%s: %s\n", what, context ? context : "-");
	tg_freecon(context);
	return 0;
}

static int get(const char *call, char **words)
{
	char *context = NULL;
	int result = -1;

	if (!strcmp(call, "getcon"))
		result = tg_getcon(&context);
	else if (!strcmp(call, "getprevcon"))
		result = tg_getprevcon(&context);
	else if (!strcmp(call, "getpidcon"))
		result = tg_getpidcon(atoi(words[0]), &context);
	else if (!strcmp(call, "getfilecon"))
		result = tg_getfilecon(words[0], &context);
	else if (!strcmp(call, "lgetfilecon"))
		result = tg_lgetfilecon(words[0], &context);
	else
		return -1;
	return told(call, result, context);
}

/* setcon CONTEXT, setexeccon CONTEXT PROGRAM, setfscreatecon CONTEXT FILE */
static int set(const char *call, char **words)
{
	char *context = NULL;
	int result;

	if (!strcmp(call, "setcon")) {
		if (tg_setcon(words[0]))
			return told(call, -1, NULL);
		result = tg_getcon(&context);
		return told("getcon", result, context);
	}
	if (!strcmp(call, "setexeccon")) {
		if (tg_setexeccon(words[0]) || tg_getexeccon(&context))
			return told(call, -1, NULL);
		told("getexeccon", 0, context);
		execl(words[1], words[1], "getcon", NULL);
		printf("execl: errno %d\n", errno);
		return 1;
	}
	if (!strcmp(call, "setfscreatecon")) {
		if (tg_setfscreatecon(words[0]))
			return told(call, -1, NULL);
		close(open(words[1], O_CREAT | O_WRONLY, 0600));
		if (tg_setfscreatecon(NULL))
			return told(call, -1, NULL);
		result = tg_getfilecon(words[1], &context);
		return told("getfilecon", result, context);
	}
	if (!strcmp(call, "setfilecon"))
		return told(call, tg_setfilecon(words[0], words[1]), NULL);
	return -1;
}

static void *set_in_thread(void *context)
{
	return (void *)(long)set("setcon", (char *[]){context});
}

/* setcon of a second thread; the first one's context stays. */
static int thread(char *context)
{
	pthread_t thread;
	void *result;
	char *own = NULL;
	int first;

	pthread_create(&thread, NULL, set_in_thread, context);
	pthread_join(thread, &result);
	first = tg_getcon(&own);
	told("first thread", first, own);
	return (long)result;
}

/* The errno of each call for NULL, which none accepts, and for missing objects: libselinux's. */
static int nothing(void)
{
	char *context = NULL;
	int wrong = 0;

#define FAILS(call, number) wrong |= (call) != -1 || errno != (number) ? !!puts(#call) : 0
#define REFUSES(call) FAILS(call, EINVAL)
	FAILS(tg_fgetfilecon(-1, &context), EBADF);
	FAILS(tg_fsetfilecon(-1, "s"), EBADF);
	FAILS(tg_getpidcon(INT_MAX, &context), ENOENT);
	REFUSES(tg_getcon(NULL));
	REFUSES(tg_getprevcon(NULL));
	REFUSES(tg_getpidcon(getpid(), NULL));
	REFUSES(tg_getexeccon(NULL));
	REFUSES(tg_getfscreatecon(NULL));
	REFUSES(tg_getfilecon("/", NULL));
	REFUSES(tg_fgetfilecon(0, NULL));
	REFUSES(tg_setcon(NULL));
	REFUSES(tg_setfilecon("/", NULL));
	REFUSES(tg_check_access(NULL, "t", "file", "read"));
	REFUSES(tg_check_access("s", NULL, "file", "read"));
	REFUSES(tg_check_access("s", "t", NULL, "read"));
	REFUSES(tg_check_access("s", "t", "file", NULL));
	return told("nothing", -wrong, context);
}

int main(int count, char **words)
{
	const char *call = count > 1 ? words[1] : "";
	int result = get(call, words + 2);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (result < 0)
		result = set(call, words + 2);
	if (result < 0 && !strcmp(call, "thread"))
		result = thread(words[2]);
	if (result < 0 && !strcmp(call, "is_enforcing")) {
		result = tg_is_enforcing();
		return told(call, result, result < 0 ? NULL : strdup(result ? "1" : "0"));
	}
	if (result < 0 && !strcmp(call, "nothing"))
		result = nothing();
	if (result < 0 && !strcmp(call, "check_access"))
		result = told(call, tg_check_access(words[2], words[3], words[4], words[5]), NULL);
	return result < 0 ? 2 : result;
}
