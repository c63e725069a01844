/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arguments of a hook whose number differs between kernels, or whose type the verifier does not
 * accept. */
#ifndef TOLLGATE_ARGUMENT_H
#define TOLLGATE_ARGUMENT_H

/* An argument of a hook. This is assembly, because clang would join the loads of two branches
 * into one at a computed place, which the verifier does not accept. */
#define TG_ARGUMENT(context, number)                                                               \
	({                                                                                         \
		void *argument_;                                                                   \
		asm volatile("%0 = *(u64 *)(%1 + 8 * " #number ")"                                 \
			     : "=r"(argument_)                                                     \
			     : "r"(context));                                                      \
		argument_;                                                                         \
	})

#endif
