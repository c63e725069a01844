/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors: whether a process may use those that another domain opened. */
#ifndef TOLLGATE_DESCRIPTOR_H
#define TOLLGATE_DESCRIPTOR_H

#include "address.h"
#include "ask.h"
#include "bpf_object.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "credential.h"
#include "enforcer.h"
#include "filesystem.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "object.h"
#include "overlay.h"
#include "read.h"
#include "request.h"
#include "scratch.h"
#include "socket_label.h"
#include "state.h"
#include "storage.h"
#include "subject.h"
#include "trusted.h"

/* file_to_av */
static __always_inline __u32 tg_file_av(fmode_t mode, __u32 flags)
{
	__u32 av = 0;

	if (mode & FMODE_READ)
		av |= FILE__READ;
	if (mode & FMODE_WRITE)
		av |= flags & O_APPEND ? FILE__APPEND : FILE__WRITE;
	return av ? av : FILE__IOCTL;
}

static __noinline int tg_use_descriptor(struct file *file)
{
	struct file *known = TG_UNTRUSTED(file, file);
	__u32 opener = tg_cred_sid(TG_ADDRESS(known->f_cred));
	__u64 subject = tg_task_subject();

	/* As long as nobody acts for a confined subject, who acts for another is not checked. */
	if (subject & TG_UNCONFINED || (opener == subject && !READ_ONCE(state.overriding)))
		return 0;
	subject = tg_find_acting(subject);
	if (subject & TG_UNCONFINED || opener == subject ||
	    tg_is_cached(subject, opener, SECCLASS_FD, FD__USE))
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = opener,
		.class = SECCLASS_FD,
		.av = FD__USE,
		.manager = TG_MANAGER_DESCRIPTOR,
		.object = TG_OBJECT_PATH,
		.inode = TG_ADDRESS(known->f_inode),
		.path = TG_ADDRESS(&file->f_path),
	};

	return tg_ask(&request);
}

/* The first half of file_has_perm: checks the use of a descriptor that another domain opened. */
static __always_inline int tg_check_descriptor(struct file *file)
{
	if (file->f_cred == bpf_get_current_task_btf()->cred)
		return 0;
	return tg_use_descriptor(file);
}

/* file_has_perm */
static __always_inline int tg_check_file(struct file *file, __u32 av)
{
	int result = tg_check_descriptor(file);

	return result ? result : tg_check_path(file->f_inode, &file->f_path, av, 0);
}

/* Whether an io_uring is taken from another domain (pidfd_getfd(2)). Files are put into a ring
 * without a hook, and SELinux checks them when they are used: two domains with one ring would
 * share the files that each opened. */
static __noinline int tg_takes_ring(struct file *file)
{
	struct tg_inode *label;
	__u64 subject;

	if (file->f_inode->i_sb->s_magic != ANON_INODE_FS_MAGIC)
		return 0;
	subject = tg_subject_by_call();
	if (subject & TG_UNCONFINED || tg_cred_sid(TG_ADDRESS(file->f_cred)) == subject)
		return 0;
	label = bpf_inode_storage_get(&inodes, file->f_inode, 0, 0);
	return label && label->flags & TG_INODE_RING;
}

#define TG_TABLE_STEPS (1u << 17) /* a step is one descriptor, or 64 places without any */

/* The number of the lowest set bit. */
static __always_inline __u32 tg_lowest(__u64 word)
{
	__u32 number = 0;

	word &= -word;
	number |= !!(word & 0xffffffff00000000) << 5;
	number |= !!(word & 0xffff0000ffff0000) << 4;
	number |= !!(word & 0xff00ff00ff00ff00) << 3;
	number |= !!(word & 0xf0f0f0f0f0f0f0f0) << 2;
	number |= !!(word & 0xcccccccccccccccc) << 1;
	number |= !!(word & 0xaaaaaaaaaaaaaaaa);
	return number;
}

/* tg_unseen_sid for an inode at an address of the kernel's. */
static __always_inline __u32 tg_unseen_sid_at(__u64 inode)
{
	struct super_block *sb = BPF_CORE_READ((struct inode *)inode, i_sb);
	__u64 device = BPF_CORE_READ(sb, s_dev);
	struct tg_superblock *superblock = bpf_map_lookup_elem(&superblocks, &device);
	__u32 sid = 0;

	if (superblock && superblock->context)
		return superblock->context;
	if (BPF_CORE_READ(sb, s_magic) == OVERLAYFS_SUPER_MAGIC)
		sid = tg_real_sid(inode);
	if (sid)
		return sid;

	if (superblock && superblock->behaviour == TG_FS_GENFS && !superblock->node)
		return superblock->sid;
	tg_met_unlabelled(BPF_CORE_READ((struct inode *)inode, i_ino), device);
	return SECINITSID_UNLABELED;
}

/* The SID of the task that opened a file. An io_uring holds files that are in no table, and it
 * is not known who opened those. */
static __always_inline __u32 tg_opener(__u64 file, const struct tg_inode *label)
{
	if (label->flags & TG_INODE_RING)
		return SECINITSID_UNLABELED;
	return tg_cred_sid((__u64)TG_MEMBER(file, struct file, f_cred) - tg_state_address());
}

/* file_has_perm for a domain and a file at an address of the kernel's. `request.quiet` is set. */
static __always_inline int tg_inherit(__u32 subject, __u64 file, struct tg_scratch *scratch)
{
	__u64 base = tg_state_address();
	__u64 inode = (__u64)TG_MEMBER(file, struct file, f_inode);
	struct tg_request *request = &scratch->request;
	struct tg_inode *label = &scratch->inode;
	int result = 0;

	*label = (struct tg_inode){};
	if (!tg_label_at(inode, label))
		tg_label_socket(inode, label);

	*request = (struct tg_request){
		.source = subject,
		.target = tg_opener(file, label),
		.class = SECCLASS_FD,
		.av = FD__USE,
		.manager = TG_MANAGER_DESCRIPTOR,
		.object = TG_OBJECT_PATH,
		.quiet = request->quiet,
		.inode = inode - base,
		.path = file + bpf_core_field_offset(struct file, f_path) - base,
	};
	if (request->target != subject)
		result = tg_ask(request);
	if (result)
		return result;
	inode = (__u64)TG_MEMBER(file, struct file, f_inode); /* again: the stack is small */
	if (TG_MEMBER(inode, struct inode, i_flags) & S_PRIVATE)
		return tg_name_bpf(request, file) ? tg_ask(request) : 0;
	request->target = label->sid ? label->sid : tg_unseen_sid_at(inode);
	request->class =
		label->class ? label->class : tg_mode_class(TG_MEMBER(inode, struct inode, i_mode));
	request->av = tg_file_av(TG_MEMBER(file, struct file, f_mode),
				 TG_MEMBER(file, struct file, f_flags));
	return tg_ask(request);
}

/* One step through a table of descriptors. It is given a pointer to a pointer, because bpf_loop
 * passes on only what is on the stack. */
static long tg_look_at_descriptor(__u64 step, struct tg_scratch **given)
{
	struct tg_table *table = &(*given)->table;
	__u64 word = table->word, file, at;

	if (!word) {
		if (table->next >= table->words) {
			table->result = TG_TABLE_ALLOWED;
			return 1;
		}
		at = (__u64)table->next++ * 8;
		table->word = tg_read_word(table->open + at);
		if (table->close)
			table->word &= ~tg_read_word(table->close + at);
		return 0;
	}
	at = (__u64)(table->next - 1) * 64 + tg_lowest(word);
	file = tg_read_word(table->files + at * 8);
	table->word = word & (word - 1);
	if (!file || !tg_inherit(table->subject, file, *given))
		return 0;
	table->result = TG_TABLE_DENIED;
	return 1;
}

/* flush_unauthorized_files: whether a new domain may use all descriptors of the current task,
 * or, at an exec, all those that are not closed by it. */
static __always_inline int tg_check_table(__u32 subject, int exec)
{
	struct fdtable *descriptors = bpf_get_current_task_btf()->files->fdt;
	struct tg_scratch *scratch = tg_take_scratch();
	__u32 result;

	if (!scratch)
		return -EACCES;
	scratch->table = (struct tg_table){
		.open = (__u64)descriptors->open_fds,
		.close = exec ? (__u64)descriptors->close_on_exec : 0,
		.files = (__u64)descriptors->fd,
		.words = descriptors->max_fds / 64,
		.subject = subject,
	};
	bpf_loop(TG_TABLE_STEPS, tg_look_at_descriptor, &scratch, 0);
	result = scratch->table.result;
	tg_give_scratch(scratch);
	if (result == TG_TABLE_TOO_LONG)
		tg_failed(TG_FAILED_DESCRIPTORS);
	return result == TG_TABLE_ALLOWED ? 0 : -EACCES;
}

/*
 * Checks descriptors when a program is executed in a new domain. SELinux replaces those that
 * the new domain may not use by /dev/null. BPF cannot do that, so the exec is denied, unless
 * the administrator chose that descriptors are checked at their use (state.inherit).
 * Descriptors that are closed on exec do not matter.
 *
 * A task that shares the table may add descriptors afterwards: tg_check_shared_table checks
 * again.
 */
static __always_inline int tg_may_inherit(struct tg_task *task, __u32 new)
{
	if (READ_ONCE(state.inherit) || tg_is_unconfined(new))
		return 0;
	task->flags &= ~TG_TASK_TABLE_SHARED;
	if (bpf_get_current_task_btf()->files->count.counter > 1)
		task->flags |= TG_TASK_TABLE_SHARED;
	return tg_check_table(new, 1);
}

/* The table is no longer shared. It is too late to deny the exec, so the process is killed. */
static __always_inline void tg_check_shared_table(struct tg_task *task, __u32 new)
{
	if (!(task->flags & TG_TASK_TABLE_SHARED))
		return;
	task->flags &= ~TG_TASK_TABLE_SHARED;
	if (tg_check_table(new, 1) && bpf_send_signal(9))
		tg_failed(TG_FAILED_DESCRIPTORS);
}

#endif
