/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The global variables, which the daemon maps. */
#ifndef TOLLGATE_STATE_H
#define TOLLGATE_STATE_H

#include "enforcer.h"
#include "libbpf.h"

/* The variables that the daemon reads and writes through a mapping of .bss (struct tg_state in
 * enforcer.h). */
struct tg_state state;

/* Set by the daemon before the programs are loaded. */
const volatile struct tg_kernel tg_kernel SEC(".rodata.kernel") = {};

static __always_inline void tg_failed(enum tg_failure what)
{
	__sync_fetch_and_add(&state.failures[what & (TG_FAILURES - 1)], 1);
}

/* Records an object without a label. The daemon reports the object and the process that met it. */
static __always_inline void tg_met_unlabelled(__u64 inode, __u32 device)
{
	tg_failed(TG_FAILED_NO_LABEL);
	state.unlabelled.inode = inode;
	state.unlabelled.device = device;
	state.unlabelled.process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(state.unlabelled.command, sizeof state.unlabelled.command);
}

#endif
