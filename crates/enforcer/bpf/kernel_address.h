/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses at which a program reads the kernel's memory, from the pointers that hooks get. */
#ifndef TOLLGATE_KERNEL_ADDRESS_H
#define TOLLGATE_KERNEL_ADDRESS_H

#include "compiler.h"
#include "libbpf.h"

/*
 * The address of a kernel object, for bpf_probe_read_kernel. A difference of pointers is a
 * number for the verifier, and the address of the current task is known as a number.
 */
#define TG_KERNEL_ADDRESS(object)                                                                  \
	TG_KERNEL_ADDRESS_BY(bpf_get_current_task_btf(), bpf_get_current_task(), object)

/* The same, where the address of the current task has been read already. */
#define TG_KERNEL_ADDRESS_BY(current, address, object)                                             \
	({                                                                                         \
		__u64 from_task_ = (__u64)((char *)(object) - (char *)(current));                  \
		TG_OPAQUE(from_task_);                                                             \
		from_task_ + (address);                                                            \
	})

#endif
