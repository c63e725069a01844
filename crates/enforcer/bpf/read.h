/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the kernel's memory at an address. */
#ifndef TOLLGATE_READ_H
#define TOLLGATE_READ_H

#include "decide.h"
#include "libbpf.h"

#define TG_READ(to, address) bpf_probe_read_kernel(&(to), sizeof(to), (void *)(address))
#define TG_MEMBER(address, type, member)                                                           \
	({                                                                                         \
		typeof(((type *)0)->member) value_ = 0;                                            \
		TG_READ(value_, (address) + bpf_core_field_offset(type, member));                  \
		value_;                                                                            \
	})

/* strcmp, for the length of `expected`. */
#define TG_SAME_TEXT(text, expected) tg_same_text(text, expected, sizeof(expected))

static __always_inline int tg_same_text(const char *text, const char *expected, __u32 size)
{
	int same = 1;

	TG_UNROLL
	for (__u32 i = 0; i < size; i++)
		same &= text[i] == expected[i];
	return same;
}

static __always_inline __u64 tg_read_word(__u64 address)
{
	__u64 word = 0;

	TG_READ(word, address);
	return word;
}

#endif
