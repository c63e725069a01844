/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of kernel objects, as numbers that the verifier lets a program keep and compare. */
#ifndef TOLLGATE_ADDRESS_H
#define TOLLGATE_ADDRESS_H

#include "compiler.h"
#include "kernel_address.h"
#include "libbpf.h"
#include "state.h"

/* The address of a kernel object as a number. A difference to one of our own addresses is a
 * scalar for the verifier, and just as unique. */
#define TG_ADDRESS(object)                                                                         \
	({                                                                                         \
		__u64 address_ = (__u64)((char *)(object) - (char *)&state);                       \
		TG_OPAQUE(address_);                                                               \
		address_;                                                                          \
	})

/*
 * Whether a hook was called without an object. Since 6.4 the verifier assumes that a hook's
 * arguments are never NULL. It would remove a plain test and let the program read at NULL,
 * where faults are not handled.
 */
#define TG_IS_NULL(object) (!TG_KERNEL_ADDRESS(object))
#define TG_IS_NULL_BY(current, address, object) (!TG_KERNEL_ADDRESS_BY(current, address, object))

/* The address that TG_ADDRESS subtracts. */
static __always_inline __u64 tg_anchor(void)
{
	void *volatile place = &state;
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof address, (void *)&place);
	return address;
}

#endif
