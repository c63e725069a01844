/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The digest of a file's content: the SHA-256 that the kernel's IMA computes, kept in inode storage
 * until somebody can write to the file.
 */
#ifndef TOLLGATE_GUARD_CONTENT_H
#define TOLLGATE_GUARD_CONTENT_H

#include "guard_decide.h"
#include "maps.h"
#include "table.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

#define TG_SHA256 4 /* HASH_ALGO_SHA256 */

/* Whether others than root may write to a file, so that what it says may be an attacker's. */
static __always_inline int tg_guard_is_untrusted(const struct inode *inode)
{
	return (inode->i_mode & S_IFMT) == S_IFREG && (inode->i_uid.val || inode->i_mode & 02);
}

/* File systems whose content changes only through their inodes in this kernel. */
static __always_inline int tg_guard_is_local(unsigned long magic)
{
	switch (magic) {
	case 0xef53:	 /* ext4 */
	case 0x58465342: /* xfs */
	case 0x9123683e: /* btrfs */
	case 0xf2f52010: /* f2fs */
	case 0xe0f5e1e2: /* erofs */
	case 0x73717368: /* squashfs */
	case 0x01021994: /* tmpfs */
	case 0x858458f6: /* ramfs */
		return 1;
	}
	return 0;
}

/*
 * Computes the digest. While the file can be written to, it is unknown (zeros): kernels before 6.11
 * and after 6.12 deny writing during an exec. Who opens it for writing counts itself in the inode
 * first, and removes the entry then (file_open); so one of the two sees the other.
 */
static __always_inline void tg_guard_hash(struct file *file, struct inode *inode, __u32 *digest,
					  struct tg_guard_content *kept)
{
	long algorithm = bpf_ima_file_hash(file, digest, TG_GUARD_DIGEST);
	int local = tg_guard_is_local(inode->i_sb->s_magic);

	if (algorithm == TG_SHA256 && kept && local)
		__builtin_memcpy(kept->words, digest, sizeof kept->words);
	if (algorithm == TG_SHA256 && inode->i_writecount.counter <= 0 && local)
		return;
	bpf_inode_storage_delete(&guard_contents, inode);
	if (algorithm != TG_SHA256 || inode->i_writecount.counter > 0)
		__builtin_memset(digest, 0, TG_GUARD_DIGEST);
}

/* What a file counts as whose content the database lacks. */
static __always_inline void tg_guard_name(struct inode *inode, __u32 *digest)
{
	struct tg_guard_content *named = bpf_inode_storage_get(&guard_named, inode, 0, 0);
	void *table = tg_guard_table();

	if (named && table && !tg_guard_program(table, digest))
		__builtin_memcpy(digest, named->words, TG_GUARD_DIGEST);
}

/* Finds the digest of a file that is about to be executed. */
static __always_inline void tg_guard_digest_of(struct file *file, __u32 *digest)
{
	struct inode *inode = file->f_inode;
	struct tg_guard_content *kept = bpf_inode_storage_get(&guard_contents, inode, 0, 0);

	if (kept) {
		__builtin_memcpy(digest, kept->words, TG_GUARD_DIGEST);
		return;
	}
	kept = bpf_inode_storage_get(&guard_contents, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	tg_guard_hash(file, inode, digest, kept);
}

static __always_inline void tg_guard_content_of(struct file *file, __u32 *digest)
{
	tg_guard_digest_of(file, digest);
	tg_guard_name(file->f_inode, digest);
}

/* A file can be written to from now on: what it is is not known any more. */
static __always_inline void tg_guard_forget_content(struct inode *inode)
{
	bpf_inode_storage_delete(&guard_contents, inode);
	bpf_inode_storage_delete(&guard_named, inode);
}

/* A file takes the name of another one, which may be a program. Returns whether it is. */
static __noinline int tg_guard_inherit(struct inode *file, struct inode *replaced)
{
	void *table = tg_guard_table();
	struct tg_guard_content *known, *named;

	if (!table || !file || !replaced)
		return 0;
	known = bpf_inode_storage_get(&guard_named, replaced, 0, 0);
	if (!known)
		known = bpf_inode_storage_get(&guard_contents, replaced, 0, 0);
	if (!known || !tg_guard_program(table, known->words))
		return 0;
	named = bpf_inode_storage_get(&guard_named, file, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (named)
		__builtin_memcpy(named->words, known->words, sizeof named->words);
	return 1;
}

#endif
