/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel itself, other processes, and memory. */
#ifndef TOLLGATE_GUARD_SYSTEM_H
#define TOLLGATE_GUARD_SYSTEM_H

#include "check.h"
#include "content.h"
#include "maps.h"
#include "process.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../kernel_address.h"
#include "../libbpf.h"
#include "../read.h"

/* enum kernel_read_file_id and kernel_load_data_id: modules, and kernels for kexec. */
#define TG_READING_MODULE 2
#define TG_READING_KEXEC_INITRAMFS 4
#define TG_PTRACE_ATTACH 2u
#define TG_AF_UNIX 1
#define TG_AF_NETLINK 16

SEC("lsm/sb_mount")
int BPF_PROG(guard_mount, const char *device, const struct path *path, const char *type,
	     unsigned long flags, void *data)
{
	return tg_guard_check(TG_GUARD_MOUNT, 0);
}

SEC("lsm/move_mount")
int BPF_PROG(guard_move_mount, const struct path *from, const struct path *to)
{
	return tg_guard_check(TG_GUARD_MOUNT, 0);
}

SEC("lsm/sb_umount") int BPF_PROG(guard_umount, struct vfsmount *mount, int flags)
{
	__u32 pins = READ_ONCE(guard_state.pins);

	if (pins && mount->mnt_sb->s_dev == pins && tg_guard_check(TG_GUARD_ITSELF, 0))
		return -EPERM;
	return tg_guard_check(TG_GUARD_MOUNT, 0);
}

SEC("lsm/sb_pivotroot")
int BPF_PROG(guard_pivot, const struct path *old, const struct path *new)
{
	return tg_guard_check(TG_GUARD_MOUNT, 0);
}

static __always_inline int tg_guard_is_code(int id)
{
	return id >= TG_READING_MODULE && id <= TG_READING_KEXEC_INITRAMFS;
}

SEC("lsm/kernel_read_file")
int BPF_PROG(guard_read_code, struct file *file, int id, bool contents)
{
	return tg_guard_is_code(id) ? tg_guard_check(TG_GUARD_MODULE, 0) : 0;
}

SEC("lsm/kernel_load_data") int BPF_PROG(guard_load_code, int id, bool contents)
{
	return tg_guard_is_code(id) ? tg_guard_check(TG_GUARD_MODULE, 0) : 0;
}

SEC("lsm/bpf") int BPF_PROG(guard_bpf, int command, void *attributes, unsigned int size)
{
	return tg_guard_check(TG_GUARD_BPF, 0);
}

static __always_inline int tg_guard_check_own(__u32 is_program, __u32 id)
{
	struct tg_guard_own own = {is_program, id};

	return bpf_map_lookup_elem(&guard_own, &own) ? tg_guard_check(TG_GUARD_ITSELF, 0) : 0;
}

SEC("lsm/bpf_map") int BPF_PROG(guard_own_map, struct bpf_map *map, fmode_t mode)
{
	return tg_guard_check_own(0, map->id);
}

SEC("lsm/bpf_prog") int BPF_PROG(guard_own_program, struct bpf_prog *program)
{
	return tg_guard_check_own(1, program->aux->id);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(guard_ptrace, struct task_struct *child, unsigned int mode)
{
	return mode & TG_PTRACE_ATTACH ? tg_guard_check(TG_GUARD_PTRACE, 0) : 0;
}

SEC("lsm/uring_override_creds") int BPF_PROG(guard_uring_creds, const struct cred *new)
{
	return tg_guard_check(TG_GUARD_URING, 0);
}

SEC("lsm/uring_sqpoll") int BPF_PROG(guard_uring_thread)
{
	return tg_guard_check(TG_GUARD_URING, 0);
}

SEC("lsm/userns_create") int BPF_PROG(guard_namespace, const struct cred *cred)
{
	return tg_guard_check(TG_GUARD_NAMESPACE, 0);
}

SEC("lsm/inode_init_security_anon")
int BPF_PROG(guard_anonymous, struct inode *inode, const struct qstr *name,
	     const struct inode *context)
{
	char text[sizeof "[userfaultfd]"] = {};

	bpf_probe_read_kernel_str(text, sizeof text, name->name);
	return TG_SAME_TEXT(text, "[userfaultfd]") ? tg_guard_check(TG_GUARD_USERFAULTFD, 0) : 0;
}

/* Memory that is executed, and that an attacker may have written. `file` may be NULL. */
SEC("lsm/mmap_file")
int BPF_PROG(guard_mmap, struct file *file, unsigned long requested, unsigned long prot,
	     unsigned long flags)
{
	int written = prot & PROT_WRITE && (flags & MAP_TYPE) != MAP_SHARED;

	if (!(prot & PROT_EXEC))
		return 0;
	if (file && TG_KERNEL_ADDRESS(file) && !written && !tg_guard_is_untrusted(file->f_inode))
		return 0;
	return tg_guard_check(TG_GUARD_MEMORY, 0);
}

SEC("lsm/file_mprotect")
int BPF_PROG(guard_mprotect, struct vm_area_struct *area, unsigned long requested,
	     unsigned long prot)
{
	if (!(prot & PROT_EXEC) || area->vm_flags & VM_EXEC || (area->vm_file && !area->anon_vma))
		return 0;
	return tg_guard_check(TG_GUARD_MEMORY, 0);
}

/* What comes from another machine may be an attacker's. */
SEC("lsm/socket_recvmsg")
int BPF_PROG(guard_receive, struct socket *socket, struct msghdr *message, int size, int flags)
{
	const struct sock *sk = socket->sk;
	__u16 family = sk ? sk->__sk_common.skc_family : 0;

	if (family != TG_AF_UNIX && family != TG_AF_NETLINK)
		tg_guard_note(TG_GUARD_NETWORK);
	return 0;
}

#endif
