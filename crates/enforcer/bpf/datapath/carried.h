/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SID that a packet carries within this machine, in tc_index: no process can set that, and
 * users have other uses for marks. The accesses are kept apart: the verifier refuses an address
 * within the context that clang has computed for several of them.
 */
#ifndef TOLLGATE_DATAPATH_CARRIED_H
#define TOLLGATE_DATAPATH_CARRIED_H

#include "../compiler.h"
#include "../libbpf.h"

static __always_inline void tg_carry(struct __sk_buff *skb, __u32 sid)
{
	TG_OPAQUE(skb);
	skb->tc_index = sid;
}

/* 0: none. */
static __always_inline __u32 tg_carried(struct __sk_buff *skb)
{
	TG_OPAQUE(skb);
	return skb->tc_index;
}

#endif
