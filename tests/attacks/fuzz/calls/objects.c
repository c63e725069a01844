/* Objects without a file: System V's, and keys. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <linux/keyctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int last_queue, last_segment, last_semaphores;
static long last_key;

CALL(msgget)
{
	return last_queue = msgget(IPC_PRIVATE, 0600);
}

CALL(msgsnd)
{
	return msgsnd(last_queue, (long[]){1, 2}, 8, IPC_NOWAIT);
}

CALL(msgrcv)
{
	return msgrcv(last_queue, buffer + 2048, 64, 0, IPC_NOWAIT);
}

CALL(shmget)
{
	return last_segment = shmget(IPC_PRIVATE, 4096, 0600);
}

CALL(shmat)
{
	return keep_memory(shmat(last_segment, NULL, PICK(0, SHM_RDONLY, SHM_EXEC))) == MAP_FAILED
		       ? -1
		       : 0;
}

CALL(semget)
{
	return last_semaphores = semget(IPC_PRIVATE, 1, 0600);
}

CALL(semop)
{
	return semop(last_semaphores, &(struct sembuf){0, 1, IPC_NOWAIT}, 1);
}

CALL(remove)
{
	return one_of(2) ? shmctl(last_segment, IPC_RMID, NULL)
			 : msgctl(last_queue, IPC_RMID, NULL);
}

CALL(add_key)
{
	return last_key = syscall(SYS_add_key, "user", PICK(0, 1) ? "one" : "two", "x", 1,
				  KEY_SPEC_PROCESS_KEYRING);
}

CALL(keyctl)
{
	return syscall(SYS_keyctl, PICK(KEYCTL_READ, KEYCTL_DESCRIBE, KEYCTL_REVOKE, KEYCTL_CLEAR),
		       PICK(0, 1) ? last_key : KEY_SPEC_PROCESS_KEYRING, buffer + 2048, 64, 0);
}
