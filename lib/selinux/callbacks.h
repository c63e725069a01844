/* SPDX-License-Identifier: MIT */
/* What the program is told: messages, and changes of mode and policy. */
#ifndef TOLLGATE_SELINUX_CALLBACKS_H
#define TOLLGATE_SELINUX_CALLBACKS_H

#include <selinux/selinux.h>

extern int (*call_log)(int type, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern int (*call_audit)(void *data, security_class_t class, char *text, size_t length);
extern int (*call_validate)(char **context);
extern int (*call_setenforce)(int enforcing);
extern int (*call_policyload)(int seqno);

/* Looks whether mode or policy has changed since the last call, and tells the program. Returns 1 if
 * anything has, else 0. */
int follow_status(void);

/* Forgets all cached decisions, and calls what asked for that (avc.c). */
void avc_flush(void);

#endif
