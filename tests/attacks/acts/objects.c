/* Objects without a file: keys, System V, queues. */
#include "acts.h"
#include <linux/keyctl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define ALL_ACCESS 0x3f3f3f3f

static long keyctl(int command, long first, long second, long third, long fourth)
{
	return syscall(SYS_keyctl, command, first, second, third, fourth);
}

static int tells_key(long key)
{
	char text[16] = "";

	if (key < 0 || keyctl(KEYCTL_READ, key, (long)text, sizeof text - 1, 0) < 0)
		return failed();
	return strcmp(text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

/* A key of the keeper's, which belongs to the same user. */
static void keep_key(void)
{
	long key = syscall(SYS_add_key, "user", "kept", TEXT_OF_SECRET, 6, KEY_SPEC_USER_KEYRING);

	must(key > 0 && !keyctl(KEYCTL_SETPERM, key, ALL_ACCESS, 0, 0), "add_key");
	tell_number(key);
	keeping();
	pause();
}

static int key_read(void)
{
	return tells_key(number_told());
}

static int key_found(void)
{
	return tells_key(
		keyctl(KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, (long)"user", (long)"kept", 0));
}

static int key_requested(void)
{
	keyctl(KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING, 0, 0);
	return tells_key(syscall(SYS_request_key, "user", "kept", NULL, KEY_SPEC_PROCESS_KEYRING));
}

/* A process that has linked a key to its own keyring possesses it. */
static int key_linked(void)
{
	if (keyctl(KEYCTL_LINK, number_told(), KEY_SPEC_PROCESS_KEYRING, 0, 0))
		return failed();
	return tells_key(number_told());
}

static int key_moved(void)
{
	return outcome(keyctl(KEYCTL_MOVE, number_told(), KEY_SPEC_USER_KEYRING,
			      KEY_SPEC_PROCESS_KEYRING, 0));
}

static int key_timed(void)
{
	return outcome(keyctl(KEYCTL_SET_TIMEOUT, number_told(), 1, 0, 0));
}

static int key_invalidated(void)
{
	return outcome(keyctl(KEYCTL_INVALIDATE, number_told(), 0, 0, 0));
}

static int key_given(void)
{
	return outcome(keyctl(KEYCTL_CHOWN, number_told(), 1000, 1000, 0));
}

/* A session's ring of another domain, joined by its name. */
static void keep_session(void)
{
	long ring = keyctl(KEYCTL_JOIN_SESSION_KEYRING, (long)"kept", 0, 0, 0);

	must(ring > 0 && !keyctl(KEYCTL_SETPERM, ring, ALL_ACCESS, 0, 0), "join");
	tell_number(ring);
	keeping();
	pause();
}

static int session_joined(void)
{
	long ring = keyctl(KEYCTL_JOIN_SESSION_KEYRING, (long)"kept", 0, 0, 0);

	/* If it is not found, another one is created. */
	return ring < 0 ? failed() : ring == number_told() ? REACHED : MISSED;
}

static int key_listed(void)
{
	char line[256], number[16];
	FILE *keys = fopen("/proc/keys", "r");

	if (!keys)
		return failed();
	snprintf(number, sizeof number, "%08lx", number_told());
	while (fgets(line, sizeof line, keys))
		if (!strncmp(line, number, 8))
			return REACHED;
	return -EACCES;
}

static void keep_segment(void)
{
	int segment = shmget(IPC_PRIVATE, 4096, 0777);
	char *memory = shmat(segment, NULL, 0);

	must(memory != (void *)-1, "shmat");
	strcpy(memory, TEXT_OF_SECRET);
	tell_number(segment);
	keeping();
	pause();
}

static int segment_attached(void)
{
	char *memory = shmat(number_told(), NULL, SHM_RDONLY);

	if (memory == (void *)-1)
		return failed();
	return strcmp(memory, TEXT_OF_SECRET) ? MISSED : REACHED;
}

/* A call that does not check the user. */
static int segment_looked_up(void)
{
	struct shmid_ds status;

	return outcome(shmctl(number_told() % 32768, SHM_STAT_ANY, &status));
}

static int segment_removed(void)
{
	return outcome(shmctl(number_told(), IPC_RMID, NULL));
}

struct letter {
	long kind;
	char text[8];
};

static void keep_messages(void)
{
	struct letter letter = {1, TEXT_OF_SECRET};
	int queue = msgget(IPC_PRIVATE, 0777);

	must(!msgsnd(queue, &letter, sizeof letter.text, 0), "msgsnd");
	tell_number(queue);
	keeping();
	pause();
}

static int message_received(void)
{
	struct letter letter;

	if (msgrcv(number_told(), &letter, sizeof letter.text, 0, IPC_NOWAIT) < 0)
		return failed();
	return strcmp(letter.text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

/* Looked at where it lies. */
static int message_copied(void)
{
	struct letter letter;

	if (msgrcv(number_told(), &letter, sizeof letter.text, 0, IPC_NOWAIT | MSG_COPY) < 0)
		return failed();
	return strcmp(letter.text, TEXT_OF_SECRET) ? MISSED : REACHED;
}

static void keep_queue(void)
{
	mqd_t queue = mq_open("/kept", O_RDWR | O_CREAT, 0777, NULL);

	must(queue >= 0 && !mq_send(queue, TEXT_OF_SECRET, 7, 0), "mq_open");
	keeping();
	pause();
}

static int queue_opened(void)
{
	return outcome(mq_open("/kept", O_RDONLY));
}

/* A queue is a file of a file system that can be mounted. */
static int queue_by_mount(void)
{
	if (mkdir("queues", 0777) || mount("none", "queues", "mqueue", 0, NULL))
		return failed();
	return outcome(open("queues/kept", O_RDONLY));
}

static int queue_removed_by_mount(void)
{
	if (mkdir("queues", 0777) || mount("none", "queues", "mqueue", 0, NULL))
		return failed();
	return outcome(unlink("queues/kept"));
}

const struct act object_acts[] = {
	{"key_read", key_read, .keeper = keep_key},
	{"key_found", key_found, .keeper = keep_key},
	{"key_requested", key_requested, .keeper = keep_key},
	{"key_linked", key_linked, .keeper = keep_key},
	{"key_moved", key_moved, .keeper = keep_key},
	{"key_timed", key_timed, .keeper = keep_key},
	{"key_invalidated", key_invalidated, .keeper = keep_key},
	{"key_given", key_given, .keeper = keep_key},
	{"key_listed", key_listed, .keeper = keep_key},
	{"session_joined", session_joined, .keeper = keep_session},
	{"segment_attached", segment_attached, .keeper = keep_segment},
	{"segment_looked_up", segment_looked_up, .keeper = keep_segment},
	{"segment_removed", segment_removed, .keeper = keep_segment},
	{"message_received", message_received, .keeper = keep_messages},
	{"message_copied", message_copied, .keeper = keep_messages},
	{"queue_opened", queue_opened, .keeper = keep_queue},
	{"queue_by_mount", queue_by_mount, .keeper = keep_queue},
	{"queue_removed_by_mount", queue_removed_by_mount, .keeper = keep_queue},
	{},
};
