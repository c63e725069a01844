/* What acts share: the secret, the notice, the keeper. */
#include "acts.h"
#include <sys/socket.h>
#include <sys/un.h>

char held[16];

void must(int succeeded, const char *what)
{
	if (succeeded)
		return;
	fprintf(stderr, "acts: %s: %s\n", what, strerror(errno));
	exit(1);
}

void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	must(file >= 0, path);
	must(write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(file);
}

int append(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), result;

	if (file < 0)
		return failed();
	result = outcome(write(file, text, strlen(text)));
	close(file);
	return result;
}

int tells_secret(int file)
{
	char text[16] = "";

	if (file < 0 || read(file, text, sizeof text - 1) < 0)
		return failed();
	return strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

int reads_secret(const char *path)
{
	return tells_secret(open(path, O_RDONLY | O_CLOEXEC));
}

static int differs(const char *path, const char *expected)
{
	char text[16] = "";
	int file = open(path, O_RDONLY | O_CLOEXEC);

	must(file >= 0 && read(file, text, sizeof text - 1) >= 0, path);
	close(file);
	return strcmp(text, expected) ? REACHED : MISSED;
}

int notice_changed(void)
{
	return differs(NOTICE, TEXT_OF_NOTICE);
}

int secret_changed(void)
{
	return differs(SECRET, TEXT_OF_SECRET);
}

int keeper(void)
{
	return atoi(getenv("KEEPER"));
}

void tell_number(long number)
{
	char text[24];

	snprintf(text, sizeof text, "%ld", number);
	write_file("number", text);
}

long number_told(void)
{
	char text[24] = "";
	int file = open("number", O_RDONLY);

	must(read(file, text, sizeof text - 1) > 0, "the keeper's number");
	close(file);
	return atol(text);
}

static const struct sockaddr_un meeting = {.sun_family = AF_UNIX, .sun_path = "\0meeting"};
#define MEETING_LENGTH (offsetof(struct sockaddr_un, sun_path) + sizeof "meeting")

int meet_keeper(void)
{
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listening, (void *)&meeting, MEETING_LENGTH) || listen(listening, 4))
		return -1;
	return accept4(listening, NULL, NULL, SOCK_CLOEXEC);
}

int meet_intruder(void)
{
	int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	while (connect(connected, (void *)&meeting, MEETING_LENGTH)) {
		must(errno == ECONNREFUSED, "meet the intruder");
		usleep(10000);
	}
	return connected;
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int send_descriptor(int socket, int file)
{
	union control control = {};
	struct iovec text = {"x", 1};
	struct msghdr message = {.msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};

	control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(sizeof file)};
	memcpy(CMSG_DATA(&control.header), &file, sizeof file);
	return sendmsg(socket, &message, 0);
}

int receive_descriptor(int socket)
{
	union control control = {};
	char byte;
	struct iovec text = {&byte, 1};
	struct msghdr message = {.msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	int file;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) < 0)
		return -1;
	if (message.msg_controllen < CMSG_LEN(sizeof file)) {
		errno = EACCES; /* the kernel says it by MSG_CTRUNC */
		return -1;
	}
	memcpy(&file, CMSG_DATA(&control.header), sizeof file);
	return file;
}
