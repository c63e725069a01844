/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The generation of the policy that decides, and its properties. */
#ifndef TOLLGATE_GENERATION_H
#define TOLLGATE_GENERATION_H

#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"

static __always_inline struct tg_generation *tg_find_generation(__u32 which)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&generations, &which);

	return map ? bpf_map_lookup_elem(map, &zero) : 0;
}

/* Whether packets have labels. */
static __always_inline int tg_is_labelling(void)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	return generation && generation->datapath.zones;
}

static __always_inline int tg_has_policycap(enum tg_policycap capability)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	return generation && generation->capabilities >> capability & 1;
}

#endif
