// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that does nothing for every LSM hook: what is measured with it is the cost of being
 * attached.
 *
 * User space loads those that the job asks for and the running kernel has. The context is not
 * looked at, so that the programs need no type of any kernel.
 */
#define SEC(name) __attribute__((section(name), used))

/* Keeps the hook as it is without a module: returns the hook's own default. */
#define LSM_HOOK(name, default_return)                                                             \
	SEC("lsm/" #name) int name(void *ctx)                                                      \
	{                                                                                          \
		return default_return;                                                             \
	}

#include "lsm_hooks.h"

/* The verifier refuses LSM programs that are not compatible with the GPL (bpf_lsm_verify_prog). */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
