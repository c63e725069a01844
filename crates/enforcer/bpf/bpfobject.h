/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BPF maps and programs, those of others and our own. */
#ifndef TOLLGATE_BPFOBJECT_H
#define TOLLGATE_BPFOBJECT_H

#include "filesystem.h"
#include "guard.h"
#include "labelled.h"

/* Types of programs that reach the memory of other tasks or the kernel's own, or take the place of
 * its functions. No link of ours can be detached or updated but by such a one: those of tracing
 * have neither (bpf_tracing_link_lops), those of iterators are updated with iterators. */
static __always_inline int tg_reaches_all(__u32 type)
{
	const __u64 types =
		1ull << BPF_PROG_TYPE_KPROBE | 1ull << BPF_PROG_TYPE_TRACEPOINT |
		1ull << BPF_PROG_TYPE_PERF_EVENT | 1ull << BPF_PROG_TYPE_RAW_TRACEPOINT |
		1ull << BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE | 1ull << BPF_PROG_TYPE_TRACING |
		1ull << BPF_PROG_TYPE_STRUCT_OPS | 1ull << BPF_PROG_TYPE_EXT |
		1ull << BPF_PROG_TYPE_LSM | 1ull << BPF_PROG_TYPE_SYSCALL;

	return types >> (type & 63) & 1;
}

/* selinux_bpf */
SEC("lsm/bpf") int BPF_PROG(bpf, int command, union bpf_attr *attributes)
{
	__u32 av = 0, type = 0;

	if (command == BPF_MAP_CREATE)
		av = BPF__MAP_CREATE;
	else if (command == BPF_PROG_LOAD)
		av = BPF__PROG_LOAD;
	if (!av)
		return 0;
	if (av == BPF__PROG_LOAD) {
		bpf_probe_read_kernel(&type, sizeof type,
				      (void *)TG_KERNEL_ADDRESS(attributes) +
					      offsetof(union bpf_attr, prog_type));
		if (tg_reaches_all(type) && tg_check_security(SECURITY__SETENFORCE))
			return -EACCES;
	}
	return tg_ask_plainly(tg_subject(), TG_SELF, SECCLASS_BPF, av, TG_MANAGER_BPF) ? -EACCES
										       : 0;
}

/* bpf_map_fmode_to_av */
static __always_inline __u32 tg_bpf_av(fmode_t mode)
{
	return (mode & FMODE_READ ? BPF__MAP_READ : 0) | (mode & FMODE_WRITE ? BPF__MAP_WRITE : 0);
}

static __always_inline int tg_check_bpf(__u64 subject, __u64 address, __u32 av)
{
	return tg_ask_plainly(subject, tg_labelled(address).sid, SECCLASS_BPF, av, TG_MANAGER_BPF)
		       ? -EACCES
		       : 0;
}

/* selinux_bpf_map: somebody gets a descriptor of a map. */
SEC("lsm/bpf_map") int BPF_PROG(bpf_map, struct bpf_map *map, fmode_t mode)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	switch (tg_guard_map(map)) {
	case TG_OWN:
		return 0;
	case TG_OWN_DENIED:
		return -EACCES;
	default:
		break;
	}
	return tg_check_bpf(subject, TG_KERNEL_ADDRESS(map), tg_bpf_av(mode)) ? -EACCES : 0;
}

/* selinux_bpf_prog */
SEC("lsm/bpf_prog") int BPF_PROG(bpf_prog, struct bpf_prog *program)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	if (tg_is_own_program(program))
		return tg_check_own() ? -EACCES : 0;
	return tg_check_bpf(subject, TG_KERNEL_ADDRESS(program->aux), BPF__PROG_RUN) ? -EACCES : 0;
}

/* Maps are labelled by one of two hooks, programs as well: they changed in 6.9. */
SEC("lsm/bpf_map_create") int BPF_PROG(bpf_map_create, struct bpf_map *map)
{
	return tg_label_made(TG_KERNEL_ADDRESS(map), SECCLASS_BPF);
}

SEC("lsm/bpf_map_alloc_security") int BPF_PROG(bpf_map_alloc_security, struct bpf_map *map)
{
	return tg_label_made(TG_KERNEL_ADDRESS(map), SECCLASS_BPF);
}

SEC("lsm/bpf_map_free") int BPF_PROG(bpf_map_free, struct bpf_map *map)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(map));
	return 0;
}

SEC("lsm/bpf_map_free_security") int BPF_PROG(bpf_map_free_security, struct bpf_map *map)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(map));
	return 0;
}

SEC("lsm/bpf_prog_load") int BPF_PROG(bpf_prog_load, struct bpf_prog *program)
{
	return tg_label_made(TG_KERNEL_ADDRESS(program->aux), SECCLASS_BPF);
}

SEC("lsm/bpf_prog_alloc_security") int BPF_PROG(bpf_prog_alloc_security, struct bpf_prog_aux *aux)
{
	return tg_label_made(TG_KERNEL_ADDRESS(aux), SECCLASS_BPF);
}

SEC("lsm/bpf_prog_free") int BPF_PROG(bpf_prog_free, struct bpf_prog *program)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(program->aux));
	return 0;
}

SEC("lsm/bpf_prog_free_security") int BPF_PROG(bpf_prog_free_security, struct bpf_prog_aux *aux)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(aux));
	return 0;
}

#define ANON_INODE_FS_MAGIC 0x09041934

/*
 * bpf_fd_pass: asks about the BPF map or program that a descriptor leads to; 0: it leads to none.
 * `file` is its address in the kernel. All such files have one inode: what they are is told by the
 * names that the kernel gives them.
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
	request->target = tg_labelled(object).sid;
	request->class = SECCLASS_BPF;
	request->manager = TG_MANAGER_BPF;
	request->object = TG_OBJECT_NONE;
	request->inode = 0;
	return 1;
}

/* Whether the current task may use what a descriptor leads to, if that is a map or a program. */
static __noinline int tg_pass_bpf(struct file *file)
{
	__u64 subject = tg_subject();
	struct tg_request request = {.source = subject};

	if (subject & TG_UNCONFINED || !tg_name_bpf(&request, TG_KERNEL_ADDRESS(file)))
		return 0;
	return tg_ask(&request) ? -EACCES : 0;
}

#endif
