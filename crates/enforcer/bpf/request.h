/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A question to the policy, and its possible results. */
#ifndef TOLLGATE_REQUEST_H
#define TOLLGATE_REQUEST_H

#include "classes.h"
#include "kernel.h"
#include "libbpf.h"

/* A question, and what the audit needs to know of it. */
struct tg_request {
	__u32 source, target, class, av; /* SIDs, SECCLASS, permissions of ours */
	__u8 manager;			 /* enum tg_manager */
	__u8 withheld;	      /* result: denied only because enforcement depends on the object */
	__u16 object;	      /* enum tg_object_kind */
	__u32 number;	      /* capability, ioctl command */
	__u32 quiet;	      /* decide only: no event */
	__u32 dontaudit;      /* no event either if dontaudit rules cover these permissions, too */
	__u32 epoch;	      /* the epoch before the target's label was read */
	__u32 began;	      /* the epoch when the check began */
	union {		      /* by `object`: TG_ADDRESS of ... */
		__u64 dentry; /* INODE: its name; 0: any of its names */
		__u64 path;   /* PATH, IOCTL: its struct path */
		__u64 task;   /* TASK: its struct task_struct */
		__u64 text;   /* NAME: the string; its address as a plain number */
		__u64 sock;   /* SOCKET: its struct sock */
	};
	__u64 inode; /* TG_ADDRESS of it: its number and file system */
	/* Results: what may be cached of all permissions. */
	__u32 allowed, denied;
};

enum tg_verdict {
	TG_DENIED = -EACCES,
	TG_GRANTED = 0,
	TG_GRANTED_ONCE = 1, /* permissive, but not in general: nothing may be cached */
};

static __always_inline int tg_is_file(__u32 class)
{
	return (class >= SECCLASS_FILE && class <= SECCLASS_ANON_INODE) ||
	       class == SECCLASS_MEMFD_FILE;
}

#endif
