/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What clang and the verifiers are told beside the language. */
#ifndef TOLLGATE_COMPILER_H
#define TOLLGATE_COMPILER_H

#include "libbpf.h"

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
/* Keeps clang from folding shifts into two multiplications, and from turning additions to ORs that
 * 6.1's verifier forgets the bounds at. */
#define TG_OPAQUE(x) asm volatile("" : "+r"(x))
#define __noinline __attribute__((noinline))

#endif
