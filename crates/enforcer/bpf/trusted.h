/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pointers that the verifier trusts. From Linux 6.2 to 6.19, it searches all types of the kernel by
 * name for each pointer that is read through one of them, on each path again
 * (btf_nested_type_is_trusted), which takes most of a start. A pointer that is only compared, or
 * through which numbers are read, need not be trusted.
 */
#ifndef TOLLGATE_TRUSTED_H
#define TOLLGATE_TRUSTED_H

#include "kernel.h"
#include "libbpf.h"

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak; /* since 6.2 */

/* The same pointer, which is not trusted. The verifier makes a move of the call. */
#define TG_UNTRUSTED(object, type)                                                                 \
	((struct type *)(bpf_ksym_exists(bpf_rdonly_cast)                                          \
				 ? bpf_rdonly_cast(object, bpf_core_type_id_kernel(struct type))   \
				 : (void *)(object)))

/* The file system of an inode. */
static __always_inline struct super_block *tg_sb_of(struct inode *inode)
{
	return TG_UNTRUSTED(inode, inode)->i_sb;
}

#endif
