/* Acts of an intruder: each tries a roundabout way to something that its domain may not do. */
#ifndef TOLLGATE_ACTS_H
#define TOLLGATE_ACTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The result of an act, besides the negative number of an error. */
#define REACHED 0 /* what the attack is for was reached */
#define MISSED 1  /* no call failed, but it was not */

/* The objects of every act. The working directory is of type `open`, and belongs to the act. */
#define SECRET "/srv/vault/secret" /* of a type of which the intruder may do nothing */
#define VAULT "/srv/vault"	   /* its directory, which may be searched */
#define NOTICE                                                                                     \
	"/srv/notices/notice" /* which may be read, mapped and watched, but not changed, not       \
				 executed */
#define PROBE                                                                                      \
	"/srv/tool/probe" /* a program that ends with PROBED, and leaves a note, if it can read    \
			     the secret */
#define PROBED 200
#define NOTE "/srv/open/note"
#define TEXT_OF_SECRET "SECRET"
#define TEXT_OF_NOTICE "NOTICE"
#define PORT 4000 /* of a type to which the intruder may not connect; the keeper listens there */

struct act {
	const char *name;
	int (*attack)(void); /* confined */
	int (*proof)(void);  /* unconfined, afterwards, if the attack cannot know itself */
	void (*keeper)(
		void); /* in a domain of its own meanwhile; calls `keeping` when it is ready */
	void (*prepare)(void); /* unconfined, before */
};

extern const struct act file_acts[], ring_acts[], descriptor_acts[], mount_acts[], process_acts[],
	memory_acts[], network_acts[], object_acts[], helper_acts[];

/* The negative number of the last error. */
static inline int failed(void)
{
	return -errno;
}

/* The result of a call whose success is the attack's aim. */
static inline int outcome(long result)
{
	return result < 0 ? failed() : REACHED;
}

/* The content of the keeper's memory. No program is loaded at another address. */
extern char held[16];

/* Executes a program in a domain, with two arguments. */
void enter(const char *domain, const char *program, const char *part, const char *name);
/* Starts the keeper: the program with the arguments "keep" and `name`. */
void start_keeper(const char *program, const char *name);
/* The keeper: reports that it is ready, and waits for its end. */
void keeping(void);
/* The intruder: the keeper's process number. */
int keeper(void);
/* The number of an object: the keeper writes it to a file, the intruder reads it. */
void tell_number(long number);
long number_told(void);

void must(int succeeded, const char *what);
void write_file(const char *path, const char *text);
int append(const char *path, const char *text);
/* Whether a file contains the secret. */
int tells_secret(int file);
int reads_secret(const char *path);
/* Whether the notice has been changed. */
int notice_changed(void);
int secret_changed(void);

/* The intruder waits until the keeper connects, because it may not connect itself. */
int meet_keeper(void);
/* The keeper's end: tries until the intruder listens. */
int meet_intruder(void);
int send_descriptor(int socket, int file);
int receive_descriptor(int socket);

/* An io_uring, for one request at a time. */
struct io_uring_sqe;
struct ring {
	int fd;
	unsigned flags;
	char *sq, *cq;
	struct io_uring_sqe *entries;
	unsigned *head, *tail, *mask, *array, *wake, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_cqe *completed;
};
int make_ring(struct ring *ring, unsigned flags);
void close_ring(struct ring *ring);
/* Makes one request; returns the kernel's answer, an error as its negative number. */
int ask_ring(struct ring *ring, const struct io_uring_sqe *entry);
/* The next answer to a ring. */
int await_ring(struct ring *ring);

#endif
