/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BPF maps and programs, by the descriptors that lead to them. */
#ifndef TOLLGATE_BPF_OBJECT_H
#define TOLLGATE_BPF_OBJECT_H

#include "address.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "enforcer.h"
#include "kernel.h"
#include "label_address.h"
#include "libbpf.h"
#include "read.h"
#include "request.h"
#include "subject.h"

/* bpf_map_fmode_to_av */
static __always_inline __u32 tg_bpf_av(fmode_t mode)
{
	return (mode & FMODE_READ ? BPF__MAP_READ : 0) | (mode & FMODE_WRITE ? BPF__MAP_WRITE : 0);
}

#define ANON_INODE_FS_MAGIC 0x09041934

/*
 * bpf_fd_pass: fills in a question about the BPF map or program that a descriptor leads to.
 * Returns 0 if it leads to neither. `file` is its address in the kernel. All such files have
 * one inode; they are distinguished by the names that the kernel gives them.
 */
static __noinline int tg_name_bpf(struct tg_request *request, __u64 file)
{
	char name[sizeof "bpf-prog"] = {};
	__u64 inode = (__u64)TG_MEMBER(file, struct file, f_inode);
	__u64 dentry = (__u64)TG_MEMBER(file, struct file, f_path.dentry);
	__u64 object = (__u64)TG_MEMBER(file, struct file, private_data);
	__u64 sb = (__u64)TG_MEMBER(inode, struct inode, i_sb);

	if (TG_MEMBER(sb, struct super_block, s_magic) != ANON_INODE_FS_MAGIC)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof name, TG_MEMBER(dentry, struct dentry, d_name.name));
	if (TG_SAME_TEXT(name, "bpf-map")) {
		request->av = tg_bpf_av(TG_MEMBER(file, struct file, f_mode));
	} else if (TG_SAME_TEXT(name, "bpf-prog")) {
		request->av = BPF__PROG_RUN;
		object = (__u64)TG_MEMBER(object, struct bpf_prog, aux);
	} else {
		return 0;
	}
	request->target = tg_sid_at(object);
	request->class = SECCLASS_BPF;
	request->manager = TG_MANAGER_BPF;
	request->object = TG_OBJECT_NONE;
	request->inode = 0;
	return 1;
}

/* Whether the current task may use the map or program that a descriptor leads to. Any other
 * file is allowed. */
static __noinline int tg_pass_bpf(struct file *file)
{
	__u64 subject = tg_subject_by_call();
	struct tg_request request = {.source = subject};

	if (subject & TG_UNCONFINED || !tg_name_bpf(&request, TG_KERNEL_ADDRESS(file)))
		return 0;
	return tg_ask(&request);
}

#endif
