/* SPDX-License-Identifier: MIT */
/* The daemon's status page (crates/abi/status.h): what is in force, read without a system call. */
#ifndef TOLLGATE_SELINUX_PAGE_H
#define TOLLGATE_SELINUX_PAGE_H

#include "status.h"

/* Reads the page as it was at one moment. Returns -1 with ENOENT where nothing is enforced; with
 * another errno it is not known: whoever checks must take it for enforcing. */
int page_read(struct tg_status_page *out);

/* The page's number of changes, which is different after each. 0: nothing is enforced. */
unsigned int page_sequence(void);

/* A descriptor that becomes readable when the page changes; -1 with errno. */
int page_watch(void);

#endif
