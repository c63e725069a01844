/* SPDX-License-Identifier: MIT */
/*
 * libtollgate: how programs query and control Tollgate. The calls are those of libselinux,
 * with tg_ before their names. docs/library.md describes them.
 *
 * All return 0, or -1 with errno; tg_error() gives the reason in words. Contexts that a call
 * returns are freed with tg_freecon(). Each call is safe in any thread, and keeps no
 * descriptor.
 */
#ifndef TOLLGATE_H
#define TOLLGATE_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why the calling thread's last failed call failed; never NULL. */
const char *tg_error(void);
void tg_freecon(char *context);

/* The context of the calling process, of the process before its last exec, and of another
 * process. */
int tg_getcon(char **context);
int tg_getprevcon(char **context);
int tg_getpidcon(pid_t pid, char **context);

/* The contexts that the calling thread gives to the program that it executes next, and to
 * files, keys and sockets that it makes; NULL: the policy's rules decide. */
int tg_getexeccon(char **context);
int tg_getfscreatecon(char **context);
int tg_getkeycreatecon(char **context);
int tg_getsockcreatecon(char **context);
int tg_setexeccon(const char *context);
int tg_setfscreatecon(const char *context);
int tg_setkeycreatecon(const char *context);
int tg_setsockcreatecon(const char *context);

/* Changes the context of the calling thread. */
int tg_setcon(const char *context);

/* The context of the peer of a connected socket; of a datagram socket, with which it has received
 * something last, from anyone or from this sender. */
struct sockaddr;
int tg_getpeercon(int fd, char **context);
int tg_getpeercon_from(int fd, const struct sockaddr *sender, unsigned int length, char **context);

/* Lets the calling thread act for the peer of a connected socket, for a while: with the peer's
 * range in its own domain, or with the peer's whole context. `before` receives the number with
 * which the same thread goes back. */
int tg_act_for(int fd, unsigned int *before);
int tg_act_as(int fd, unsigned int *before);
int tg_act_back(unsigned int before);

/* Labels of files; l: of a symbolic link itself, f: of an open file. */
int tg_getfilecon(const char *path, char **context);
int tg_lgetfilecon(const char *path, char **context);
int tg_fgetfilecon(int fd, char **context);
int tg_setfilecon(const char *path, const char *context);
int tg_lsetfilecon(const char *path, const char *context);
int tg_fsetfilecon(int fd, const char *context);

/* 1: what the policy denies is denied; 0: it is granted, and audited. */
int tg_is_enforcing(void);

/* Checks whether a context has a permission on another in the policy in force; -1 with EACCES
 * if it does not. For programs with objects of their own that run as root. */
int tg_check_access(const char *source, const char *target, const char *object_class,
		    const char *permission);

#ifdef __cplusplus
}
#endif

#endif
