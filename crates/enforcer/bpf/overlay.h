/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overlayfs: an inode of it stands for one of another file system, and has its label, as SELinux
 * reads the attribute through overlayfs. The real inode cannot be reached by a pointer that helpers
 * take, so its storage is read as the kernel lays it out. All that is read is checked by what leads
 * back: without that there is no label.
 */
#ifndef TOLLGATE_OVERLAY_H
#define TOLLGATE_OVERLAY_H

#include "filesystem.h"

#define TG_KERNEL(major, minor) ((major) << 16 | (minor) << 8)

extern int LINUX_KERNEL_VERSION __kconfig;
/* Where the BPF LSM's part of an inode's security blob is. */
extern const void bpf_lsm_blob_sizes __ksym __weak;

#define TG_STORAGES 8 /* maps of inode storage that an inode may be in, ours among them */

/*
 * The address of the dentry that an overlay inode stands for: of the upper layer, else of the first
 * lower one. Since 6.5 what follows the inode in struct ovl_inode is (upper dentry, struct
 * ovl_entry *), before, since 5.19, (upper dentry, layer, lower dentry).
 */
static __always_inline __u64 tg_real_dentry(__u64 inode)
{
	__u64 after = inode + ((bpf_core_type_size(struct inode) + 7) & ~7ull);
	__u64 dentry = 0, entry = 0;
	__u32 layers = 0;

	if (bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)after) || dentry)
		return dentry;
	if (LINUX_KERNEL_VERSION < TG_KERNEL(5, 19))
		return 0;
	if (LINUX_KERNEL_VERSION < TG_KERNEL(6, 5)) {
		bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)(after + 16));
		return dentry;
	}
	/* struct ovl_entry: how many layers, then (layer, dentry) of each */
	bpf_probe_read_kernel(&entry, sizeof entry, (void *)(after + 8));
	bpf_probe_read_kernel(&layers, sizeof layers, (void *)entry);
	if (layers)
		bpf_probe_read_kernel(&dentry, sizeof dentry, (void *)(entry + 16));
	return dentry;
}

/* What the map `inodes` has for the inode of an address; 0: nothing. */
static __noinline __u32 tg_stored_sid(__u64 address)
{
	struct inode *inode = (void *)address;
	__u64 sizes = (__u64)&bpf_lsm_blob_sizes, node, smap;
	struct bpf_local_storage_elem *element;
	struct bpf_local_storage *storage = 0;
	__u32 own = ((struct bpf_map *)&inodes)->id;
	int at = 0;

	if (!sizes)
		return 0;
	at = BPF_CORE_READ((struct lsm_blob_sizes *)sizes, lbs_inode);
	bpf_probe_read_kernel(&storage, sizeof storage, BPF_CORE_READ(inode, i_security) + at);
	if (!storage || (__u64)BPF_CORE_READ(storage, owner) != address)
		return 0;
	node = (__u64)BPF_CORE_READ(storage, list.first);
	for (int i = 0; i < TG_STORAGES && node; i++) {
		element = (void *)(node -
				   bpf_core_field_offset(struct bpf_local_storage_elem, snode));
		smap = (__u64)BPF_CORE_READ(element, sdata.smap);
		if (BPF_CORE_READ((struct bpf_local_storage_map *)smap, map.id) == own) {
			struct tg_inode label = {};

			bpf_probe_read_kernel(
				&label, sizeof label,
				(void *)element +
					bpf_core_field_offset(struct bpf_local_storage_elem,
							      sdata.data));
			return label.sid;
		}
		node = (__u64)BPF_CORE_READ(element, snode.next);
	}
	return 0;
}

/* The SID of what an inode of overlayfs stands for; 0: it has none, or it is not known. */
static __always_inline __u32 tg_real_sid(struct inode *inode)
{
	struct dentry *dentry = (void *)tg_real_dentry(TG_KERNEL_ADDRESS(inode));
	__u64 real = dentry ? (__u64)BPF_CORE_READ(dentry, d_inode) : 0;

	return real ? tg_stored_sid(real) : 0;
}

static __always_inline int tg_is_overlay(struct super_block *sb)
{
	return sb->s_magic == OVERLAYFS_SUPER_MAGIC;
}

#endif
