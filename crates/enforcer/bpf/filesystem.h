/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* File systems: what the policy says about their labels (superblock_security_struct of
 * SELinux). */
#ifndef TOLLGATE_FILESYSTEM_H
#define TOLLGATE_FILESYSTEM_H

#include "address.h"
#include "compiler.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "read.h"
#include "state.h"

#define PROC_SUPER_MAGIC 0x9fa0
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#define ANON_INODE_FS_MAGIC 0x09041934
#define SOCKFS_MAGIC 0x534f434b
#define SYSFS_MAGIC 0x62656572
#define PSTOREFS_MAGIC 0x6165676c
#define DEBUGFS_MAGIC 0x64626720
#define TRACEFS_MAGIC 0x74726163
#define CGROUP_SUPER_MAGIC 0x27e0eb
#define CGROUP2_SUPER_MAGIC 0x63677270
#define FUNCTIONFS_MAGIC 0xa647361

/* selinux_is_sblabel_mnt: whether labels of files on it may be set. */
static __always_inline __u32 tg_settable(struct super_block *sb, const struct tg_fs_name *name,
					 __u32 behaviour)
{
	switch (behaviour) {
	case TG_FS_XATTR:
	case TG_FS_TRANS:
	case TG_FS_TASK:
		return TG_SUPERBLOCK_SETTABLE;
	case TG_FS_GENFS:
		break;
	default:
		return 0;
	}
	switch (sb->s_magic) {
	case SYSFS_MAGIC:
	case PSTOREFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
		return TG_SUPERBLOCK_SETTABLE;
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
		return tg_has_policycap(TG_POLICYCAP_CGROUPSECLABEL) ? TG_SUPERBLOCK_SETTABLE : 0;
	case FUNCTIONFS_MAGIC:
		return tg_has_policycap(TG_POLICYCAP_FUNCTIONFS_SECLABEL) ? TG_SUPERBLOCK_SETTABLE
									  : 0;
	}
	return TG_SAME_TEXT(name->text, "rootfs") ? TG_SUPERBLOCK_SETTABLE : 0;
}

/* security_fs_use: looks up a file system that is seen for the first time, or for the first
 * time in this generation. */
static __noinline struct tg_superblock *tg_superblock_read(struct super_block *sb, __u32 generation)
{
	struct tg_superblock new = {
		.address = TG_ADDRESS(sb), .generation = generation, .sid = SECINITSID_UNLABELED};
	__u32 number = __sync_fetch_and_add(&state.superblocks, 1) + 1;
	__u64 device = sb->s_dev;
	struct tg_fs_name name = {};

	bpf_core_read(new.uuid, sizeof new.uuid, &sb->s_uuid);
	bpf_probe_read_kernel_str(name.text, sizeof name.text, BPF_CORE_READ(sb, s_type, name));
	struct tg_filesystem *policy = bpf_map_lookup_elem(&filesystems, &name);

	if (policy) {
		new.sid = policy->sid;
		new.behaviour = policy->behaviour;
		new.node = policy->node;
	}
	new.flags = tg_settable(sb, &name, new.behaviour);
	struct tg_superblock *known = bpf_map_lookup_elem(&superblocks, &device);

	new.number = number;
	if (!known) {
		bpf_map_update_elem(&superblocks, &device, &new, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&superblocks, &device);
		if (!known)
			tg_failed(TG_FAILED_SUPERBLOCK);
		return known;
	}
	/* The entry of the daemon, or of an older generation, is kept. That of a file system
	 * that is gone is not. */
	if (known->address && known->address != new.address) {
		known->flags = 0;
		known->number = 0;
		known->context = 0;
	}
	if (!known->number)
		known->number = number;
	known->flags = (known->flags & (TG_SUPERBLOCK_WALKED | TG_SUPERBLOCK_NEW)) | new.flags;
	known->sid = new.sid;
	known->behaviour = new.behaviour;
	known->node = new.node;
	__builtin_memcpy(known->uuid, new.uuid, sizeof known->uuid);
	known->generation = generation;
	/* The daemon may have labelled it before its UUID was known. */
	if (known->flags & TG_SUPERBLOCK_WALKED)
		bpf_map_update_elem(&uuids, known->uuid, &number, BPF_ANY);
	WRITE_ONCE(known->address, new.address);
	return known;
}

/* What is known of a file system. NULL: there is no memory for it, which is counted. */
static __always_inline struct tg_superblock *tg_superblock_of(struct super_block *sb)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u64 device = sb->s_dev, address = TG_ADDRESS(sb);
	__u32 number = generation ? generation->number : 0;
	struct tg_superblock *known = bpf_map_lookup_elem(&superblocks, &device);

	if (known && known->address == address && known->generation == number)
		return known;
	return tg_superblock_read(sb, number);
}

/* The number of a file system among those that the programs have seen; 0: they have not. */
static __noinline __u32 tg_number_of(struct super_block *sb)
{
	struct tg_superblock *superblock = tg_superblock_of(sb);

	return superblock ? superblock->number : 0;
}

/* Records that something is made, moved or linked on a file system, so that the daemon moves
 * its checkpoint. */
static __always_inline void tg_note_change(struct super_block *sb)
{
	WRITE_ONCE(state.changed[sb->s_dev & (TG_CHANGED - 1)], 1);
}

/* The SID of a file system. Returns 0 or -EACCES. */
static __always_inline int tg_superblock_sid(struct super_block *sb, __u32 *sid)
{
	struct tg_superblock *superblock = tg_superblock_of(sb);

	if (!superblock)
		return -EACCES;
	*sid = superblock->sid;
	return 0;
}

#endif
