/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard's maps, which are pinned beside its programs. The comments say who writes and reads
 * each map, why it has this size, and what happens when it is full.
 */
#ifndef TOLLGATE_GUARD_MAPS_H
#define TOLLGATE_GUARD_MAPS_H

#include "guard.h"
#include "../guard_domains.h"
#include "../libbpf.h"

/*
 * The database in force, in the only place.
 * Writer: the guard's process and commands fill a table, and then switch by one update.
 * Reader: the programs, for each call of a guarded process.
 * Size: as many entries as the database has. It cannot be full.
 */
struct guard_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct tg_guard_key);
	__type(value, struct tg_guard_entry);
} guard_template SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct guard_table);
} guard_tables SEC(".maps") = {.values = {&guard_template}};

/*
 * Why each process is guarded, and which program it runs.
 * Writer: the programs, at exec and fork.
 * Reader: the programs.
 * Size: what a machine may have of guarded processes. Full, or no memory: tg_guard_state.storage,
 * and the exec or the fork fails.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, __u64);
	__type(value, struct tg_guard_task);
} guard_processes SEC(".maps");

/* Who is entering a domain that the policy marks as guarded (guard_domains.h). */
struct tg_guard_domains guard_domains SEC(".maps");

/*
 * Processes that run already when the guard starts, by their numbers: guard_adopt gives them this.
 * Writer: the daemon, before it runs guard_adopt.
 * Reader: guard_adopt.
 * Size: as guard_processes. Full: the daemon says so.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, __u32);
	__type(value, struct tg_guard_task);
} guard_running SEC(".maps");

/*
 * The guard's own maps and programs, which guarded processes may not have.
 * Writer: the daemon, when it starts the guard. Reader: the programs. Size: what there is.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, struct tg_guard_own);
	__type(value, __u32);
} guard_own SEC(".maps");

/*
 * The digest of a file's content, until it is opened for writing.
 * Writer: the programs, when a guarded process executes it.
 * Reader: the programs.
 * Size: one per executed file, in the inode itself. No memory: it is computed again.
 */
struct tg_guard_content {
	__u32 words[TG_GUARD_WORDS];
};
struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_guard_content);
} guard_contents SEC(".maps");

/*
 * A program that a file replaced by its name, until it is opened for writing: a content that the
 * database lacks counts as that one.
 * Writer: the programs, when root renames a file over a program; the daemon, which marks those that
 * the database has.
 * Reader: the programs.
 * Size: one per program, in the inode itself. No memory: the content is unknown until the daemon
 * has entered it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_guard_content);
} guard_named SEC(".maps");

/*
 * What was learnt already, so that it is reported once.
 * Writer, reader: the programs.
 * Size: what the programs of a machine do beside the rules. Full: the kernel removes what was not
 * met for the longest time, which is then reported again.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct tg_guard_met);
	__type(value, __u64);
} guard_met SEC(".maps");

/*
 * Calls that no rule allows.
 * Writer: the programs.
 * Reader: the guard's process.
 * Size: the events of some seconds. Full: tg_guard_state.lost counts them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} guard_events SEC(".maps");

/* All global variables. */
struct tg_guard_state guard_state;

#endif
