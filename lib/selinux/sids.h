/* SPDX-License-Identifier: MIT */
/* Contexts that a program has interned. */
#ifndef TOLLGATE_SELINUX_SIDS_H
#define TOLLGATE_SELINUX_SIDS_H

#include <selinux/avc.h>
#include <stdint.h>

struct sid {
	struct security_id public; /* what the program sees */
	uint32_t number;	   /* never given again */
	uint32_t hash;
	struct sid *next;
};

/* Interns a context. NULL with errno. */
struct sid *sids_intern(const char *text);
void sids_forget(void);
unsigned int sids_count(void);

#endif
