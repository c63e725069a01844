/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of kernel objects, as numbers that the verifier lets a program keep and compare. */
#ifndef TOLLGATE_ADDRESS_H
#define TOLLGATE_ADDRESS_H

#include "compiler.h"
#include "libbpf.h"
#include "state.h"

/* Addresses of kernel objects as numbers: a difference to an address of ours is a scalar to the
 * verifier, and as unique. */
#define TG_ADDRESS(object)                                                                         \
	({                                                                                         \
		__u64 address_ = (__u64)((char *)(object) - (char *)&state);                       \
		TG_OPAQUE(address_);                                                               \
		address_;                                                                          \
	})

/*
 * The address of a kernel object, for bpf_probe_read_kernel: a difference of pointers is a number
 * to the verifier, and of the current task the address is known as one.
 */
#define TG_KERNEL_ADDRESS(object)                                                                  \
	TG_KERNEL_ADDRESS_BY(bpf_get_current_task_btf(), bpf_get_current_task(), object)

/* The same, by what is known of the current task already. */
#define TG_KERNEL_ADDRESS_BY(current, address, object)                                             \
	({                                                                                         \
		__u64 from_task_ = (__u64)((char *)(object) - (char *)(current));                  \
		TG_OPAQUE(from_task_);                                                             \
		from_task_ + (address);                                                            \
	})

/*
 * Whether a hook was given no object. Since 6.4 the verifier holds that its arguments are always
 * there: it would remove a plain test and let the program read at NULL, with no fault handling.
 */
#define TG_IS_NULL(object) (!TG_KERNEL_ADDRESS(object))
#define TG_IS_NULL_BY(current, address, object) (!TG_KERNEL_ADDRESS_BY(current, address, object))

/* What TG_ADDRESS has taken away. */
static __always_inline __u64 tg_anchor(void)
{
	void *volatile place = &state;
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof address, (void *)&place);
	return address;
}

#endif
