/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where programs, daemon and library find one another. lib/ is shipped without this header and has
 * three of them itself; a test holds them equal. */
#ifndef TOLLGATE_PATHS_H
#define TOLLGATE_PATHS_H

/* Pinned programs and maps, on the BPF file system. */
#define TG_PINS "/sys/fs/bpf/tollgate"
#define TG_PINNED_TASKS TG_PINS "/maps/tasks"	/* the contexts of processes */
#define TG_PINNED_CHECKS TG_PINS "/maps/checks" /* each check, while they are recorded */
#define TG_PINNED_BSS TG_PINS "/maps/bss" /* the programs' global variables: struct tg_state */
#define TG_GUARD_PINS "/sys/fs/bpf/tollgate-guard" /* those of the guard */

/* What outlives the daemon beside the kernel. A test of the library has another folder. */
#ifndef TG_FOLDER
#define TG_FOLDER "/run/tollgate"
#endif
#define TG_SOCKET TG_FOLDER "/socket"	  /* where the daemon answers */
#define TG_CONTEXTS TG_FOLDER "/contexts" /* what SIDs stand for, in lines SID CONTEXT */
#define TG_STATUS TG_FOLDER "/status"	  /* what is in force: struct tg_status_page */
#define TG_GENERATION TG_FOLDER "/generation-%u.policy" /* the policy of a generation */

#endif
