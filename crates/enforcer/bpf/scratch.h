/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory for a decision, beside the stack. */
#ifndef TOLLGATE_SCRATCH_H
#define TOLLGATE_SCRATCH_H

#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"

static __always_inline struct tg_scratch *tg_take_scratch(void)
{
	__u32 processor = bpf_get_smp_processor_id();

	for (__u32 try = 0; try < TG_SCRATCH_TRIES; try++) {
		__u32 index = (processor * TG_SCRATCH_TRIES + try) & (TG_SCRATCHES - 1);
		struct tg_scratch *scratch = bpf_map_lookup_elem(&scratches, &index);

		if (scratch && !__sync_val_compare_and_swap(&scratch->taken, 0, 1)) {
			scratch->request.quiet = 0;
			return scratch;
		}
	}
	tg_failed(TG_FAILED_SCRATCH);
	return 0;
}

static __always_inline void tg_give_scratch(struct tg_scratch *scratch)
{
	__sync_lock_test_and_set(&scratch->taken, 0);
}

#endif
