/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The internet sockets that have labels, in all network namespaces. */
#ifndef TOLLGATE_DATAPATH_SOCKETS_H
#define TOLLGATE_DATAPATH_SOCKETS_H

#include "../endpoints.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "enforcer.h"

/* Names the ends of a socket. */
static __always_inline void tg_name_ends(struct tg_labelled_socket *found, struct sock *sk)
{
	struct tg_endpoints *ends = &found->ends;

	ends->family = sk->__sk_common.skc_family;
	ends->port[0] = sk->__sk_common.skc_num;
	ends->port[1] = tg_swap(sk->__sk_common.skc_dport);
	if (ends->family == AF_INET) {
		ends->address[0][0] = sk->__sk_common.skc_rcv_saddr;
		ends->address[1][0] = sk->__sk_common.skc_daddr;
		return;
	}
	BPF_CORE_READ_INTO(&ends->address[0], sk, __sk_common.skc_v6_rcv_saddr);
	BPF_CORE_READ_INTO(&ends->address[1], sk, __sk_common.skc_v6_daddr);
}

/* The map of the link is `sockets`. */
SEC("iter/bpf_sk_storage_map")
int labelled_sockets(struct bpf_iter__bpf_sk_storage_map *iterator)
{
	struct tg_labelled_socket found = {};
	struct tg_socket *label = iterator->value;
	struct sock *sk = iterator->sk;

	if (!sk || !label)
		return 0;
	__u32 family = sk->__sk_common.skc_family;

	if (family != AF_INET && family != AF_INET6)
		return 0;
	found.label = *label;
	found.cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	found.namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	tg_name_ends(&found, sk);
	bpf_seq_write(iterator->meta->seq, &found, sizeof found);
	return 0;
}

#endif
