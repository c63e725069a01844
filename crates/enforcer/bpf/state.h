/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps, which are pinned, and the global variables, which the daemon has mapped. */
#ifndef TOLLGATE_STATE_H
#define TOLLGATE_STATE_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
/* Keeps clang from folding shifts into two multiplications, and from turning additions to ORs that
 * 6.1's verifier forgets the bounds at. */
#define TG_OPAQUE(x) asm volatile("" : "+r"(x))
#define __noinline __attribute__((noinline))

struct generation_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tg_generation);
} generation_template SEC(".maps");

/* enum tg_which */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TG_GENERATIONS);
	__type(key, __u32);
	__array(values, struct generation_map);
} generations SEC(".maps") = {.values = {&generation_template}};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TG_SIDS * 2);
	__type(key, struct tg_sid_key);
	__type(value, __u32);
} sids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_inode);
} inodes SEC(".maps");

/* Cloned: what a listening socket's child is made of has its label (inet_csk_clone). */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct tg_socket);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct tg_label_key);
	__type(value, struct tg_label_value);
} labels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct tg_label_key);
	__type(value, struct tg_unwritten);
} unwritten SEC(".maps");

/* Directories in which something has been made, or to which something has come, and their labels:
 * the daemon takes them. One that finds no room is left out until it is read again. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tg_label_key);
	__type(value, __u32);
} active SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct tg_fs_name);
	__type(value, struct tg_filesystem);
} filesystems SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct tg_superblock);
} superblocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct tg_genfs_key);
	__type(value, struct tg_genfs_value);
} genfs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tg_guarded);
	__type(value, __u32);
} guarded SEC(".maps");

/* Bytes; in the last ones only doorbells find room (tg_doorbell). */
#define TG_EVENTS (1u << 20)
#define TG_EVENTS_OF_BELLS (1u << 15)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TG_EVENTS);
} events SEC(".maps");

/* What the daemon reads and writes through a mapping of .bss (struct tg_state in enforcer.h). */
struct tg_state state;

/* Set by the daemon before the programs are loaded. */
const volatile struct tg_kernel tg_kernel SEC(".rodata.kernel") = {};

static __always_inline void tg_failed(enum tg_failure what)
{
	__sync_fetch_and_add(&state.failures[what & (TG_FAILURES - 1)], 1);
}

/* An object without a label: the daemon tells which, and who met it. */
static __always_inline void tg_met_unlabelled(__u64 inode, __u32 device)
{
	tg_failed(TG_FAILED_NO_LABEL);
	state.unlabelled.inode = inode;
	state.unlabelled.device = device;
	state.unlabelled.process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(state.unlabelled.command, sizeof state.unlabelled.command);
}

static __always_inline struct tg_generation *tg_generation(__u32 which)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&generations, &which);

	return map ? bpf_map_lookup_elem(map, &zero) : 0;
}

#endif
