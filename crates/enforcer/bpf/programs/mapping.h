/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mapping of files into memory, and memory that may be executed. */
#ifndef TOLLGATE_PROGRAMS_MAPPING_H
#define TOLLGATE_PROGRAMS_MAPPING_H

#include "../address.h"
#include "../ask.h"
#include "../bpf_object.h"
#include "../cache.h"
#include "../credential.h"
#include "../descriptor.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../object.h"
#include "../process.h"
#include "../request.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"

#define TG_LOW_MEMORY 65536ul /* CONFIG_LSM_MMAP_MIN_ADDR, as distributions set it */

static __always_inline int tg_ask_self(__u32 class, __u32 av)
{
	__u64 subject = tg_subject();

	return subject & TG_UNCONFINED ? 0 : tg_ask_process(subject, subject, class, av);
}

/* file_map_prot_check: whether executable memory is writable, or comes from no file. */
static __always_inline int tg_is_execmem(int has_file, int private, int shared, __u64 prot)
{
	return prot & PROT_EXEC && (!has_file || private || (!shared && prot & PROT_WRITE));
}

static __always_inline __u32 tg_map_av(int shared, __u64 prot)
{
	__u32 av = FILE__READ;

	if (shared && prot & PROT_WRITE)
		av |= FILE__WRITE;
	if (prot & PROT_EXEC)
		av |= FILE__EXECUTE;
	return av;
}

/* A file is mapped so that its pages may be changed and executed. SELinux stops at the first
 * denial: of map, then of execmem, then of what else is asked of the file. */
static __always_inline int tg_check_execmem_of(struct file *file)
{
	int result = tg_check_path(file->f_inode, &file->f_path, FILE__MAP, 0);

	return result ? result : tg_ask_self(SECCLASS_PROCESS, PROCESS__EXECMEM);
}

/* selinux_mmap_file. `file` is NULL for anonymous memory. The verifier of some kernels assumes
 * that this cannot happen, so its address is tested as a number. */
SEC("lsm/mmap_file")
int BPF_PROG(mmap_file, struct file *file, unsigned long requested, unsigned long prot,
	     unsigned long flags)
{
	int shared = (flags & MAP_TYPE) == MAP_SHARED;

	if (!file || TG_IS_NULL(file))
		return tg_is_execmem(0, 0, shared, prot)
			       ? tg_ask_self(SECCLASS_PROCESS, PROCESS__EXECMEM)
			       : 0;
	struct inode *inode = file->f_inode;
	__u32 av = FILE__MAP | tg_map_av(shared, prot);
	int result = 0;

	if (tg_is_execmem(1, inode->i_flags & S_PRIVATE, shared, prot)) {
		result = tg_check_execmem_of(file);
		av &= ~FILE__MAP;
	}
	if (!result)
		result = tg_check_descriptor(file);
	if (!result && inode->i_flags & S_PRIVATE)
		result = tg_pass_bpf(file);
	if (result)
		return result;
	/* Nobody can map a directory, but an attempt to execute one is checked all the same. */
	if (prot & PROT_EXEC && (inode->i_mode & S_IFMT) == S_IFDIR)
		return tg_check_path(inode, &file->f_path, av, 1);
	return tg_check_path(inode, &file->f_path, av, 0);
}

static __noinline int tg_ask_of_backing(__u32 mounter, struct file *backing, __u32 av)
{
	struct tg_request request = {
		.source = mounter,
		.av = av,
		.object = TG_OBJECT_PATH,
		.path = TG_ADDRESS(&backing->f_path),
		.inode = TG_ADDRESS(backing->f_inode),
	};

	tg_name_object(&request, backing->f_inode);
	return tg_ask(&request) ? -EACCES : 0;
}

/* selinux_mmap_backing_file: a stacked file system maps a file of another, as the task that
 * mounted it. The order is that of mmap_file. */
SEC("lsm/mmap_backing_file")
int BPF_PROG(mmap_backing_file, struct vm_area_struct *area, struct file *backing)
{
	__u32 mounter = tg_cred_sid(TG_ADDRESS(backing->f_cred));
	unsigned long flags = area->vm_flags;
	__u64 prot = flags & (PROT_WRITE | PROT_EXEC); /* VM_WRITE and VM_EXEC are the same bits */
	int shared = flags & VM_SHARED ? 1 : 0;
	struct tg_request execmem = {
		.source = mounter,
		.target = mounter,
		.class = SECCLASS_PROCESS,
		.av = PROCESS__EXECMEM,
		.manager = TG_MANAGER_PROCESS,
	};

	if (tg_is_unconfined(mounter))
		return 0;
	if (!tg_is_execmem(1, backing->f_inode->i_flags & S_PRIVATE, shared, prot))
		return tg_ask_of_backing(mounter, backing, FILE__MAP | tg_map_av(shared, prot));
	if (tg_ask_of_backing(mounter, backing, FILE__MAP) || tg_ask(&execmem))
		return -EACCES;
	return tg_ask_of_backing(mounter, backing, tg_map_av(shared, prot));
}

SEC("lsm/mmap_addr") int BPF_PROG(mmap_addr, unsigned long address)
{
	return address < TG_LOW_MEMORY ? tg_ask_self(SECCLASS_MEMPROTECT, MEMPROTECT__MMAP_ZERO)
				       : 0;
}

/* vma_is_stack_for_current */
static __always_inline int tg_is_stack(struct vm_area_struct *area, struct mm_struct *memory)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	unsigned long start = area->vm_start, end = area->vm_end;
	unsigned long pointer = registers->sp, stack = memory->start_stack;

	return (start <= pointer && end >= pointer) || (start <= stack && end >= stack);
}

/* What selinux_file_mprotect checks on the process itself, for heap and stack. */
static __always_inline __u32 tg_area_av(struct vm_area_struct *area, struct file *file)
{
	struct mm_struct *memory = area->vm_mm;

	/* A running task always has one, but the verifier of 7.2 requires a test. */
	if (!memory || area->vm_flags & VM_EXEC)
		return 0;
	if (area->vm_start >= memory->start_brk && area->vm_end <= memory->brk)
		return PROCESS__EXECHEAP;
	return !file && tg_is_stack(area, memory) ? PROCESS__EXECSTACK : 0;
}

/* Memory is to be executed. SELinux stops at the first denial: of heap, stack or changed pages of a
 * file, then of execmem. */
static __always_inline int tg_check_executed(struct vm_area_struct *area, unsigned long prot)
{
	struct file *file = area->vm_file;
	__u32 own = tg_area_av(area, file);
	int result = 0;

	if (own)
		result = tg_ask_self(SECCLASS_PROCESS, own);
	else if (file && !(area->vm_flags & VM_EXEC) && area->anon_vma)
		result = tg_check_file(file, FILE__EXECMOD);
	if (!result && tg_is_execmem(!!file, file && file->f_inode->i_flags & S_PRIVATE,
				     !!(area->vm_flags & VM_SHARED), prot))
		result = tg_ask_self(SECCLASS_PROCESS, PROCESS__EXECMEM);
	return result;
}

/* selinux_file_mprotect */
SEC("lsm/file_mprotect")
int BPF_PROG(file_mprotect, struct vm_area_struct *area, unsigned long requested,
	     unsigned long prot)
{
	struct file *file = area->vm_file;
	int result = prot & PROT_EXEC ? tg_check_executed(area, prot) : 0;

	if (result || !file)
		return result;
	return tg_check_file(file, tg_map_av(!!(area->vm_flags & VM_SHARED), prot));
}

#endif
