/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard's hooks. An exec has four steps: bprm_check_security checks what the caller names, and
 * then the script's interpreter with the script as the caller; bprm_creds_from_file finds out
 * whether the process will be guarded; bprm_committing_creds puts that in force.
 */
#ifndef TOLLGATE_GUARD_PROGRAMS_H
#define TOLLGATE_GUARD_PROGRAMS_H

#include "check.h"
#include "content.h"
#include "maps.h"
#include "process.h"
#include "report.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

#define TG_EXECUTABLE_BY_GROUP 0010u

/* Describes a file that is about to be executed, in the entry of the current task. */
static __always_inline void tg_guard_describe(struct file *file, struct tg_guard_program_of *of)
{
	__builtin_memset(of->content, 0, sizeof of->content);
	tg_guard_content_of(file, of->content);
	if (bpf_d_path(&file->f_path, of->path, sizeof of->path) < 0)
		of->path[0] = 0;
}

/* Reports an exec that no rule allows, with the path of what is executed. */
static __always_inline void tg_guard_report_exec(struct linux_binprm *bprm,
						 const struct tg_guard_question *question,
						 const struct tg_guard_program_of *caller,
						 __u32 mode)
{
	struct tg_guard_event *event = tg_guard_begin_event(question, caller, mode);

	if (!event)
		return;
	if (bpf_d_path(&bprm->file->f_path, event->object, sizeof event->object) < 0)
		event->object[0] = 0;
	bpf_ringbuf_submit(event, 0);
}

/* Checks what a guarded process executes. Each file of an exec comes here: a script, then its
 * interpreter. */
static __always_inline int tg_guard_check_exec(struct linux_binprm *bprm,
					       struct tg_guard_task *task, __u32 class, int first)
{
	struct tg_guard_question question = {.class = class, .call = TG_GUARD_EXEC};
	struct tg_guard_answer answer = {};
	struct tg_guard_program_of *caller = first ? &task->program : &task->next;

	__builtin_memcpy(question.caller, caller->content, sizeof question.caller);
	tg_guard_content_of(bprm->file, question.target);
	tg_guard_ask(&question, &answer);
	if (first && answer.allowed && answer.flags & TG_GUARD_FREE)
		task->flags |= TG_GUARD_NEXT_FREE;
	if (tg_guard_count(&question, &answer))
		tg_guard_report_exec(bprm, &question, caller, answer.mode);
	return tg_guard_verdict(&answer);
}

SEC("lsm.s/bprm_check_security") int BPF_PROG(guard_exec, struct linux_binprm *bprm)
{
	struct tg_guard_task *task = tg_guard_current();
	__u32 class = tg_guard_class_of(task);
	int first = bprm->interp == bprm->filename, denied = 0;

	if (task && first)
		task->flags = 0;
	if (task && class)
		denied = tg_guard_check_exec(bprm, task, class, first);
	if (denied || !first)
		return denied ? -EPERM : 0;
	if (!class && !tg_guard_is_daemon(bpf_get_current_task_btf()->cred))
		return 0;
	if (!task)
		task = bpf_task_storage_get(&guard_tasks, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task) {
		__sync_fetch_and_add(&guard_state.storage, 1);
		return -ENOMEM;
	}
	tg_guard_describe(bprm->file, &task->next);
	task->flags |= TG_GUARD_NEXT;
	return 0;
}

/* Whether a daemon begins with this content: one whose mode says that its calls matter, or any.
 * What is only executed by others, such as a shell, has the mode TG_GUARD_LEARN. */
static __noinline int tg_guard_begins(const struct tg_guard_program_of *program)
{
	void *table = tg_guard_table();
	struct tg_guard_entry *known;

	if (!table)
		return 0;
	if (READ_ONCE(guard_state.daemons))
		return 1;
	known = tg_guard_program(table, program->content);
	return known && known->mode >= TG_GUARD_WARN;
}

/* The class after the exec. */
static __always_inline __u32 tg_guard_next_class(struct linux_binprm *bprm,
						 const struct tg_guard_task *task)
{
	struct cred *new = bprm->cred;
	const struct cred *old = bpf_get_current_task_btf()->cred;
	__u32 class = task ? task->class : 0;

	if (!tg_guard_is_privileged(new))
		return 0;
	if (task && task->flags & TG_GUARD_NEXT_FREE)
		return 0;
	if (new->uid.val && !tg_guard_is_privileged(old))
		return TG_GUARD_BY_SETUID;
	return class;
}

SEC("lsm.s/bprm_creds_from_file")
int BPF_PROG(guard_creds, struct linux_binprm *bprm, struct file *file)
{
	struct tg_guard_task *task = tg_guard_current();
	__u32 class = tg_guard_next_class(bprm, task);

	if (!task && !class)
		return 0;
	if (!task)
		task = bpf_task_storage_get(&guard_tasks, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task) {
		__sync_fetch_and_add(&guard_state.storage, 1);
		return -ENOMEM;
	}
	if (class && !(task->flags & TG_GUARD_NEXT)) {
		tg_guard_describe(file, &task->next);
		task->flags |= TG_GUARD_NEXT;
	}
	if (!class && task->flags & TG_GUARD_NEXT && !(task->flags & TG_GUARD_NEXT_FREE) &&
	    tg_guard_is_daemon(bprm->cred) && tg_guard_begins(&task->next))
		class = TG_GUARD_BY_DAEMON;
	task->next_class = class;
	return 0;
}

/* Nothing can fail any more. */
SEC("lsm/bprm_committing_creds") int BPF_PROG(guard_commit, struct linux_binprm *bprm)
{
	struct tg_guard_task *task = tg_guard_current();

	if (!task)
		return 0;
	task->class = task->next_class;
	task->flags = 0;
	if (task->class)
		__builtin_memcpy(&task->program, &task->next, sizeof task->program);
	return 0;
}

SEC("lsm/task_alloc") int BPF_PROG(guard_fork, struct task_struct *child, unsigned long flags)
{
	struct tg_guard_task *task = tg_guard_current(), *copy;

	if (!task || !task->class)
		return 0;
	copy = bpf_task_storage_get(&guard_tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!copy) {
		__sync_fetch_and_add(&guard_state.storage, 1);
		return -ENOMEM;
	}
	copy->class = task->class;
	__builtin_memcpy(&copy->program, &task->program, sizeof copy->program);
	return 0;
}

/* The user id that new credentials add; ~0: none. */
static __always_inline __u32 tg_guard_new_id(const struct cred *new, const struct cred *old)
{
	__u32 uid = old->uid.val, euid = old->euid.val, suid = old->suid.val;
	__u32 now = new->euid.val, files = new->fsuid.val;

	if (new->uid.val != uid)
		return new->uid.val;
	if (now != uid && now != euid && now != suid)
		return now;
	if (files != uid && files != euid && files != suid)
		return files;
	return TG_GUARD_ANY_ID;
}

/* A program that is denied another user and does not look whether it has succeeded would go on as
 * root, so it is killed. */
SEC("lsm/task_fix_setuid")
int BPF_PROG(guard_setuid, struct cred *new, const struct cred *old, int flags)
{
	__u32 id = tg_guard_new_id(new, old);

	if (id == TG_GUARD_ANY_ID || !tg_guard_check(TG_GUARD_SETUID, id, 0))
		return 0;
	if (id)
		bpf_send_signal(9);
	return -EPERM;
}

/* The bits by which a mode gives privilege. Without the group's right to execute, the set-group-id
 * bit is for locks. */
static __always_inline __u32 tg_guard_bits(__u32 mode)
{
	__u32 bits = mode & TG_GUARD_SET_USER;

	if (mode & TG_EXECUTABLE_BY_GROUP)
		bits |= mode & TG_GUARD_SET_GROUP;
	return bits;
}

SEC("lsm/path_chmod") int BPF_PROG(guard_chmod, const struct path *path, umode_t mode)
{
	struct dentry *dentry = path->dentry;
	__u32 had = dentry->d_inode->i_mode, bits = tg_guard_bits(mode) & ~tg_guard_bits(had);

	if (!bits || (had & S_IFMT) != S_IFREG)
		return 0;
	return tg_guard_check(TG_GUARD_CHMOD, bits, (__u64)dentry->d_name.name) ? -EPERM : 0;
}

/* A file that is made with the bits. */
SEC("lsm/path_mknod")
int BPF_PROG(guard_mknod, const struct path *dir, struct dentry *dentry, umode_t mode,
	     unsigned int dev)
{
	__u32 bits = tg_guard_bits(mode), type = mode & S_IFMT;

	if (!bits || (type && type != S_IFREG))
		return 0;
	return tg_guard_check(TG_GUARD_CHMOD, bits, (__u64)dentry->d_name.name) ? -EPERM : 0;
}

/* The content of a file that can be written to from now on is not known any more. */
SEC("lsm/file_open") int BPF_PROG(guard_open, struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		bpf_inode_storage_delete(&guard_contents, file->f_inode);
	return 0;
}

/* truncate(2) opens nothing. */
SEC("lsm/path_truncate") int BPF_PROG(guard_truncate, const struct path *path)
{
	bpf_inode_storage_delete(&guard_contents, path->dentry->d_inode);
	return 0;
}

#endif
