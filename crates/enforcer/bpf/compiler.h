/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hints for clang and the verifiers that the language lacks. */
#ifndef TOLLGATE_COMPILER_H
#define TOLLGATE_COMPILER_H

#include "libbpf.h"

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
/* Keeps clang from folding shifts into two multiplications, and from turning additions into
 * ORs, at which the verifier of 6.1 forgets bounds. */
#define TG_OPAQUE(x) asm volatile("" : "+r"(x))
#define __noinline __attribute__((noinline))

#endif
