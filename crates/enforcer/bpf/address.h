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
#define TG_IS_NULL(object) (!(TG_ADDRESS(object) + tg_state_address()))

/*
 * The kernel's address of `state`, as a number: what has been subtracted from an address of ours.
 * A pointer that is written to a map is a number when it is read again. It is always the same one,
 * so it does not matter how many write it.
 */
static __always_inline __u64 tg_state_address(void)
{
	__u64 address = READ_ONCE(state.address);

	if (__builtin_expect(!!address, 1))
		return address;
	WRITE_ONCE(state.address, (__u64)&state);
	return READ_ONCE(state.address);
}

#endif
