/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plain sockets: their label, and what was granted on them, without storage. Most sockets are
 * used for one connection, and the making and freeing of storage would cost more than all their
 * checks. state.plain_sockets is no cache: a sock without a place there gets storage at once
 * (socket_label.h), and so does each one while packets have labels, because the daemon lists those
 * by their storage.
 *
 * A place is written before anybody else can find the sock, and freed with it (sk_free_security).
 * If that is missed, because the program was interrupted on this processor at the same (before 6.2
 * it does not run within itself) or because hooks did not run at all, it is freed when the next
 * sock is made at the address (tg_begin_sock). A sock that is made while hooks do not run at all
 * has the label of the one before; without the place it would have none, and be the machine's.
 */
#ifndef TOLLGATE_PLAIN_SOCKET_H
#define TOLLGATE_PLAIN_SOCKET_H

#include "address.h"
#include "cache.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "libbpf.h"
#include "maps.h"
#include "state.h"

/* The row of a sock, by its address (TG_ADDRESS). */
static __always_inline __u64 tg_plain_socket_row(__u64 sock)
{
	return tg_address_key(sock) >> (64 - TG_PLAIN_SOCKET_ROW_BITS);
}

/* The places in a row. */
static __always_inline struct tg_plain_socket *tg_plain_socket_places(__u64 row)
{
	struct tg_plain_socket *places = state.plain_sockets;

	places += row * TG_PLAIN_WAYS;
	TG_OPAQUE(places);
	return places;
}

/* The number of a sock's place, from 1 on; 0: it is not plain. A number, because the verifier would
 * read on once for each place to which a pointer may lead. */
TG_FUNCTION __u64 tg_find_plain_socket(__u64 sock)
{
	__u64 row = tg_plain_socket_row(sock);
	struct tg_plain_socket *places = tg_plain_socket_places(row);

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++)
		if (READ_ONCE(places[way].sock) == sock)
			return row * TG_PLAIN_WAYS + way + 1;
	return 0;
}

/* Gives a sock that has no place one with its label. Returns 0 if all of its row are taken. */
TG_FUNCTION int tg_put_plain_socket(__u64 sock, __u32 sid, __u32 class, __u32 peer)
{
	struct tg_plain_socket *places = tg_plain_socket_places(tg_plain_socket_row(sock));

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++) {
		if (READ_ONCE(places[way].sock) ||
		    __sync_val_compare_and_swap(&places[way].sock, 0, TG_PLAIN_SOCKET_TAKEN))
			continue;
		places[way].kept = (struct tg_sock){.label = {sid, class, peer}};
		WRITE_ONCE(places[way].sock, sock);
		return 1;
	}
	return 0;
}

TG_FUNCTION int tg_forget_plain_socket(__u64 sock)
{
	struct tg_plain_socket *places = tg_plain_socket_places(tg_plain_socket_row(sock));

	for (__u32 way = 0; way < TG_PLAIN_WAYS; way++)
		if (READ_ONCE(places[way].sock) == sock)
			WRITE_ONCE(places[way].sock, 0);
	return 0;
}

/* What is kept of the sock in a place, by the place's number. */
static __always_inline struct tg_sock *tg_plain_sock(__u64 number)
{
	struct tg_plain_socket *places = state.plain_sockets;

	number = (number - 1) & (TG_PLAIN_SOCKETS - 1);
	TG_OPAQUE(number);
	return &places[number & (TG_PLAIN_SOCKETS - 1)].kept;
}

/* What is kept of a sock, or of the struct bpf_sock that stands for it. NULL: it is the machine's.
 */
static __noinline struct tg_sock *tg_sock_of(void *sk)
{
	__u64 plain = tg_find_plain_socket(TG_ADDRESS(sk));

	return plain ? tg_plain_sock(plain) : bpf_sk_storage_get(&sockets, sk, 0, 0);
}

#endif
