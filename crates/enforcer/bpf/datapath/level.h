/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy's levels in the numbers of a domain, and the other way round. */
#ifndef TOLLGATE_DATAPATH_LEVEL_H
#define TOLLGATE_DATAPATH_LEVEL_H

#include "../libbpf.h"
#include "datapath.h"
#include "decide.h"
#include "enforcer.h"
#include "netlabel.h"
#include "tables.h"

/* One of the lists of struct tg_doi. */
struct tg_category_numbers {
	__u16 of[TG_DOI_CATEGORIES];
};
struct tg_categories {
	__u64 word[TG_CATEGORIES / 64];
};

_Static_assert(TG_CATEGORIES == TG_DOI_CATEGORIES && TG_CATEGORIES == TG_LABEL_CATEGORIES,
	       "a policy, a domain and a packet have as many categories");

/* Categories by other numbers. Returns whether each of them has one. */
TG_FUNCTION int tg_translate_categories(const struct tg_category_numbers *numbers,
					const struct tg_categories *from, struct tg_categories *to)
{
	__u64 unmapped = 0;

	if (!numbers || !from || !to)
		return 0;
	TG_ROLL
	for (__u32 word = 0; word < TG_CATEGORIES / 64; word++)
		to->word[word] = 0;
	TG_ROLL
	for (__u32 category = 0; category < TG_CATEGORIES; category++) {
		__u64 present = from->word[category / 64] >> (category & 63) & 1;
		__u32 number = numbers->of[category];

		/* TG_UNMAPPED is above all categories. */
		unmapped |= present & number >> 15;
		to->word[number / 64 & (TG_CATEGORIES / 64 - 1)] |= present << (number & 63);
	}
	return !unmapped;
}

/* A level of the policy as a packet has it: sensitivity and categories of `label`. Returns whether
 * the domain has numbers for it. */
TG_FUNCTION int tg_level_out(const struct tg_doi *doi, const struct tg_level *level,
			     struct tg_netlabel *label)
{
	if (!doi || !level || !label)
		return 0;
	__u32 sensitivity = level->sensitivity - 1;

	if (sensitivity >= TG_DOI_SENSITIVITIES)
		return 0;
	label->sensitivity = sensitivity;
	if (!doi->translated) {
		TG_ROLL
		for (__u32 word = 0; word < TG_CATEGORIES / 64; word++)
			label->categories[word] = level->categories[word];
		return 1;
	}
	label->sensitivity = doi->sensitivity_out[sensitivity & (TG_DOI_SENSITIVITIES - 1)];
	return label->sensitivity < TG_DOI_SENSITIVITIES &&
	       tg_translate_categories((const void *)doi->category_out,
				       (const void *)level->categories, (void *)label->categories);
}

/* What a packet says, as a level of the policy. Returns whether the domain has numbers for it. */
TG_FUNCTION int tg_level_in(const struct tg_doi *doi, const struct tg_netlabel *label,
			    struct tg_level *level)
{
	if (!doi || !label || !level)
		return 0;
	__u32 sensitivity = label->sensitivity & (TG_DOI_SENSITIVITIES - 1);

	level->reserved = 0;
	level->sensitivity = sensitivity + 1;
	if (!doi->translated) {
		TG_ROLL
		for (__u32 word = 0; word < TG_CATEGORIES / 64; word++)
			level->categories[word] = label->categories[word];
		return 1;
	}
	level->sensitivity = doi->sensitivity_in[sensitivity] + 1u;
	return level->sensitivity <= TG_DOI_SENSITIVITIES &&
	       tg_translate_categories((const void *)doi->category_in,
				       (const void *)label->categories, (void *)level->categories);
}

#endif
