/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All maps, which are pinned in TG_PINS/maps (paths.h). The comments say who writes and
 * reads each map, why it has this size, and what happens when it is full. Another object file
 * can share them by these names: libbpf then uses the pinned ones. It must be compiled for tables
 * of the same size (TG_CAPACITY), which the value of `generation_template` tells.
 *
 * The four maps of enum tg_room have the sizes that the administrator sets. The sizes here are
 * the defaults. Their places are divided into shares (share.h).
 *
 * "The programs" are those of programs/, "the daemon" is crates/enforcer. BPF_F_NO_PREALLOC:
 * memory is allocated when an entry is made, and not for all places at the start.
 */
#ifndef TOLLGATE_MAPS_H
#define TOLLGATE_MAPS_H

#include "enforcer.h"
#include "guard_domains.h"
#include "libbpf.h"
#include "request.h"
#include "tables.h"

/*
 * The policies, by enum tg_which: each place holds an array map of one struct tg_generation.
 * Writer: the daemon puts a whole generation in a place; the programs add contexts and levels to
 * it.
 * Reader: the programs, for each decision that no cache has; the daemon.
 * Size: the policy in force, the one before it, and a candidate. It cannot be full, but contexts
 * and levels within a generation can be (TG_FAILED_SIDS_FULL, TG_FAILED_LEVELS_FULL).
 */
struct generation_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tg_generation);
} generation_template SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TG_GENERATIONS);
	__type(key, __u32);
	__array(values, struct generation_map);
} generations SEC(".maps") = {.values = {&generation_template}};

/*
 * The SID of each context, per generation.
 * Writer: the daemon, when it loads a policy; the programs, when they compute a new context
 * (tg_intern). The daemon removes those of a generation that is gone.
 * Reader: the programs.
 * Size: all SIDs, in the generation in force and in the next. Full: the new context gets no SID,
 * what would have it is denied, and TG_FAILED_SIDS_FULL counts it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TG_SIDS * 2);
	__type(key, struct tg_sid_key);
	__type(value, __u32);
} sids SEC(".maps");

/*
 * The contexts of each task: its own, and those that it gives to what it makes.
 * Writer: the programs, at fork, exec and prctl(2); the daemon, for processes that existed before.
 * Reader: the programs, if `task_cache` has no entry; the daemon, by pidfd.
 * Size: one per task, in the task itself. No memory: TG_FAILED_TASK_STORAGE, and a confined task
 * makes no child.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_task);
} tasks SEC(".maps");

/*
 * The label of each inode in memory.
 * Writer: the programs, when an inode is made or first seen; the daemon, when it labels or
 * relabels. Reader: the programs, where `access_cache` has no entry; the daemon, by descriptor.
 * Size: one per inode, in the inode itself. No memory: TG_FAILED_INODE_STORAGE; what is being made
 * is not made, what exists is unlabelled.
 */
struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_inode);
} inodes SEC(".maps");

/*
 * The label of each socket that is not plain. Cloned: the socket of an accepted connection gets the
 * label of the listening socket (inet_csk_clone).
 * Writer: the programs, when a socket is made or accepted; the daemon, for a socket of its own.
 * Reader: the programs; the daemon.
 * Size: one per socket that is neither plain nor the machine's, in the socket itself. No memory:
 * TG_FAILED_SOCKET_STORAGE, and a confined task makes no socket.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct tg_sock);
} sockets SEC(".maps");

/*
 * The text of each context, for getsockopt(SO_PEERSEC).
 * Writer: the daemon, for each SID that it knows; the programs, for a SID that a connection needs
 * before that (text.h).
 * Reader: the programs.
 * Size: all SIDs. It cannot be full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TG_SIDS);
	__type(key, __u32);
	__type(value, struct tg_text);
} texts SEC(".maps");

/*
 * The SID that each datagram socket has received last from each sender.
 * Writer: the programs (heard.h).
 * Reader: the daemon, for programs that ask for it.
 * Size: senders that sockets have to tell apart. Full: the kernel removes those that were not heard
 * for the longest time, and nothing is known of them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tg_heard);
	__type(value, __u32);
} heard SEC(".maps");

/*
 * Labels of files that differ from their directory's, whether or not the file is in memory.
 * Writer: the programs, for what is made, linked, renamed or deleted; the daemon, when it reads the
 * attributes of a file system.
 * Reader: the programs, when an inode is first seen; the daemon, to write attributes.
 * Size: TG_ROOM_LABELS. Full, or the share used up: what would need an entry is not made, linked or
 * renamed (-ENOSPC); TG_FAILED_SHARE or TG_FAILED_LABELS_FULL counts it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct tg_label_key);
	__type(value, struct tg_label_value);
} labels SEC(".maps");

/*
 * Labels in `labels` whose attribute the daemon has yet to write.
 * Writer: the programs.
 * Reader: the daemon, which takes all entries.
 * Size: what is made before the daemon looks. It looks often, and at each place, so there are few.
 * Full: `state.labels_missed`, and the daemon looks through all of `labels`.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, struct tg_label_key);
	__type(value, struct tg_unwritten);
} unwritten SEC(".maps");

/*
 * Directories in which something was made, or to which something was moved, and their labels.
 * Writer: the programs (tg_enter_active).
 * Reader: the daemon, which takes all entries and writes the attributes.
 * Size: what is in use between two checkpoints. Full: a directory is left out until it is read from
 * disk again.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tg_label_key);
	__type(value, __u32);
} active SEC(".maps");

/*
 * What the policy says about each type of file system (fs_use, genfscon).
 * Writer: the daemon, when it loads a policy.
 * Reader: the programs, when they first see a file system in a generation.
 * Size: more types than a kernel knows. Full: the daemon refuses the policy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct tg_fs_name);
	__type(value, struct tg_filesystem);
} filesystems SEC(".maps");

/*
 * What is known of each mounted file system, by its device number.
 * Writer: the programs, when they first see it and when it goes; the daemon, when it has
 * walked it.
 * Reader: the programs and the daemon.
 * Size: more than are mounted anywhere. Full: TG_FAILED_SUPERBLOCK, and what is on the file system
 * gets no label.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct tg_superblock);
} superblocks SEC(".maps");

/*
 * File systems that were labelled here, or seen, by UUID.
 * Writer: the programs, when a new file system is mounted, and when they first see one that was
 * walked; the daemon, when it has walked one, and for those that have notes.
 * Reader: the programs, when a file system is mounted.
 * Size: more than a machine meets. Full: none is new any more. What is mounted is denied until it
 * is walked.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct tg_uuid);
	__type(value, __u32);
} uuids SEC(".maps");

/*
 * How an inode without extended attributes is known, by the type of its file system.
 * Writer: the daemon, from the kernel's types.
 * Reader: the programs, when they first see a file of a file system that was not walked.
 * Size: more types than the daemon knows of. It cannot be full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct tg_fs_name);
	__type(value, struct tg_bare);
} bare SEC(".maps");

/*
 * The policy's labels by path (genfscon), by the longest prefix of a name below a directory.
 * Writer: the daemon, when it loads a policy.
 * Reader: the programs, when they first see a file of such a file system.
 * Size: ten times what Debian's policy needs. Full: the daemon refuses the policy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct tg_genfs_key);
	__type(value, struct tg_genfs_value);
} genfs SEC(".maps");

/*
 * The enforcer's own maps and programs, by identifier.
 * Writer: the daemon, when it loads programs and when it makes a generation.
 * Reader: the programs, when a confined task opens a map or a program.
 * Size: some 250 are needed. Full: the daemon does not start.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tg_guarded);
	__type(value, __u32);
} guarded SEC(".maps");

/*
 * Denials and doorbells.
 * Writer: the programs (event.h, doorbell.h).
 * Reader: the daemon, which writes them to the audit log.
 * Size, in bytes: some 1500 events; in the last 32 KiB only doorbells find room. Full: the event is
 * lost and TG_FAILED_EVENT_LOST counts it; the decision stands.
 */
#define TG_EVENTS (1u << 20)
#define TG_EVENTS_OF_BELLS (1u << 15)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TG_EVENTS);
} events SEC(".maps");

/*
 * Checks (struct tg_asked), for studies of the caches.
 * Writer: the programs, while TG_STATISTICS_RECORDED is set (record.h).
 * Reader: who measures.
 * Size, in bytes: a page; where checks are to be recorded, what `enforce` sets. Full: the check is
 * not recorded.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} checks SEC(".maps");

/*
 * The SIDs of credentials whose place in `state.credentials` is taken by another
 * (credential.h).
 * Writer: the programs, when credentials are made and freed.
 * Reader: the programs.
 * Size: TG_ROOM_CREDENTIALS. Full, or the share used up: the fork, exec or setuid fails (-ENOMEM);
 * TG_FAILED_CREDENTIALS or TG_FAILED_SHARE counts it.
 */
struct tg_credential {
	__u32 sid, share;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, __u64);
	__type(value, struct tg_credential);
} credentials SEC(".maps");

/*
 * Labels, by address, of objects with neither an inode nor storage (label_address.h). Objects
 * of the machine have no entry.
 * Writer: the programs, when a System V object, message, key, performance event, BPF map or program
 * is made and freed.
 * Reader: the programs.
 * Size: TG_ROOM_OBJECTS. Full, or the share used up: a confined task does not make the object
 * (-ENOMEM); TG_FAILED_OBJECTS_FULL or TG_FAILED_SHARE counts it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, __u64);
	__type(value, struct tg_labelled);
} objects SEC(".maps");

/*
 * The task that set a file's owner, by the file's address. Without an entry, it is the task
 * that opened the file. An owner is only ever set through the hook, so what is left of a file
 * that no longer exists is replaced before it is read.
 * Writer: the programs; the daemon regularly has entries of closed files removed (sweep).
 * Reader: the programs, when a file signals its owner.
 * Size: TG_ROOM_OWNERS. Full, or the share used up: the owner counts as unlabelled from then on;
 * TG_FAILED_OWNERS_FULL or TG_FAILED_SHARE counts it.
 */
struct tg_owner {
	__u64 word; /* TG_OWNER of the task that set it; 0: the task that opened the file, or no
		       room */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct tg_owner);
} owners SEC(".maps");

/*
 * The SIDs of tasks that were made while hooks did not run.
 * Writer: the daemon, which works them out from the iterator `lineage`.
 * Reader: the iterator `relabel_slipped`, which gives them to the tasks.
 * Size: as many as the daemon handles at once. Full: it handles the rest in another round.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct tg_slipped);
	__type(value, __u32);
} slipped SEC(".maps");

/*
 * Decisions in which the candidate differs (shadow.h).
 * Writer: the programs; the daemon empties it.
 * Reader: the daemon (`tollgate shadow status`).
 * Size: pairs of contexts that occur in a trial. Full: TG_FAILED_SHADOW counts what is
 * missing.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct tg_difference_key);
	__type(value, struct tg_difference);
} differences SEC(".maps");

/* The state of a walk through a table of descriptors (descriptor.h). */
enum tg_table_result { TG_TABLE_TOO_LONG, TG_TABLE_ALLOWED, TG_TABLE_DENIED };
struct tg_table {
	__u64 open, close, files; /* addresses of open_fds, close_on_exec or 0, fd */
	__u64 word;		  /* descriptors that are still to be checked */
	__u32 words, next;	  /* how many words there are, and the next one */
	__u32 subject;		  /* the new domain */
	__u32 result;
};

/*
 * Memory for a decision beside the stack, which has only 512 bytes (scratch.h).
 * Writer and reader: the program that has taken it.
 * Size: TG_SCRATCH_TRIES for each of 128 processors; more processors share them. All of a
 * processor's taken: TG_FAILED_SCRATCH, and the question is denied.
 */
struct tg_scratch {
	__u32 taken, reserved;
	struct tg_question question;
	struct tg_label label;
	struct tg_name name;
	struct tg_table table;
	struct tg_inode inode; /* the label of the file that is checked */
	struct tg_request request;
};
#define TG_SCRATCHES 1024u
#define TG_SCRATCH_TRIES 8u

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_SCRATCHES);
	__type(key, __u32);
	__type(value, struct tg_scratch);
} scratches SEC(".maps");

/*
 * The contexts of systemd units, by the names of their cgroups (unit.h).
 * Writer: the daemon, when units or the policy change.
 * Reader: the programs, when the machine executes a program.
 * Size: more units than a machine has. Full: the daemon refuses them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct tg_unit_key);
	__type(value, struct tg_unit);
} units SEC(".maps");

/*
 * The contexts of containers, by their cgroups (container.h).
 * Writer: the daemon, when a container starts, and when its cgroup is gone.
 * Reader: the programs, when the machine executes a program; the next daemon.
 * Size: containers that run at a time. Full: the daemon refuses them, and they do not start.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TG_CONTAINERS);
	__type(key, __u64);
	__type(value, struct tg_container);
} containers SEC(".maps");

/*
 * Connections that are being accepted: the label that the accepted socket will have, and its
 * peer's, by the address of the request_sock. Writer: the programs, when a connection is requested
 * (inet_conn_request). Reader: the programs, when its answer is sent and when it is accepted. Size:
 * connections that are half open at a time. Full: the oldest is forgotten. Its socket has the
 * listener's label, and no peer.
 */
struct tg_connection {
	__u32 sid, peer;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct tg_connection);
} requests SEC(".maps");

/*
 * Contexts that sealed labels name, by generation and identifier.
 * Writer: the daemon, for each SID, and for contexts of other machines.
 * Reader: the programs, when a packet brings a sealed label.
 * Size: all SIDs, in the generation in force and in the next. Full: the daemon tells it, and
 * packets with the label are dropped.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TG_SIDS * 2);
	__type(key, struct tg_identifier_key);
	__type(value, __u32);
} identified SEC(".maps");

/*
 * The network namespaces in which packets are labelled, by cookie.
 * Writer: the daemon, once programs are attached to the devices of a namespace; it removes
 * namespaces that are gone.
 * Reader: the programs, when a confined task makes an internet socket.
 * Size: more than the daemon enters. It cannot be full: before that, `state.namespaces_full` says
 * so, and confined tasks get no internet sockets in other namespaces.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} namespaces SEC(".maps");

/*
 * The guard's map `guard_domains`, while the guard runs.
 * Writer: who starts or ends the guard or enforcement.
 * Reader: the programs, at exec.
 * Size: one guard. It cannot be full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct tg_guard_domains);
} to_guard SEC(".maps");

#endif
