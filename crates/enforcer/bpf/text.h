/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The texts of contexts, which only the daemon can make in general. */
#ifndef TOLLGATE_TEXT_H
#define TOLLGATE_TEXT_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"

/* The longest beginning, and the longest range, that are joined here. */
#define TG_TEXT_HALF (TG_TEXT_WORDS * 4)

const struct tg_text tg_no_text = {};

/*
 * Makes the text of a SID that has none: the SID has the context of `named` with the range of
 * `ranged`. Whoever connects may ask for it before the daemon can tell it. It has no length until
 * it is complete.
 */
TG_FUNCTION int tg_make_text(__u32 sid, __u32 named, __u32 ranged)
{
	struct tg_text *name, *range, *text;
	__u32 at, from, length;

	if (bpf_map_lookup_elem(&texts, &sid))
		return 0;
	name = bpf_map_lookup_elem(&texts, &named);
	range = bpf_map_lookup_elem(&texts, &ranged);
	if (!name || !range || !name->length || !range->length)
		return 0;
	at = name->range;
	from = range->range;
	length = range->length - from;
	if (at >= TG_TEXT_HALF || from >= TG_TEXT_HALF || length >= TG_TEXT_HALF)
		return 0;
	/* The verifier of 6.1 does not see these bounds in what clang makes of the test. */
	TG_OPAQUE(at);
	TG_OPAQUE(from);
	TG_OPAQUE(length);
	at &= TG_TEXT_HALF - 1;
	from &= TG_TEXT_HALF - 1;
	length &= TG_TEXT_HALF - 1;
	if (bpf_map_update_elem(&texts, &sid, (void *)&tg_no_text, BPF_NOEXIST))
		return 0;
	text = bpf_map_lookup_elem(&texts, &sid);
	if (!text)
		return 0;
	bpf_probe_read_kernel(text->words, at, name->words);
	bpf_probe_read_kernel((char *)text->words + at, length, (char *)range->words + from);
	text->range = at;
	WRITE_ONCE(text->length, at + length);
	return 0;
}

#endif
