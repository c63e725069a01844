/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exec and fork. An exec has three steps: bprm_check_security checks what the caller names, and
 * then the script's interpreter with the script as the caller; bprm_creds_from_file finds out
 * whether the process will be guarded; bprm_committing_creds puts that in force.
 */
#ifndef TOLLGATE_GUARD_EXEC_H
#define TOLLGATE_GUARD_EXEC_H

#include "check.h"
#include "content.h"
#include "maps.h"
#include "process.h"
#include "report.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

/* Describes a file that is about to be executed, in the entry of the current task. */
static __always_inline void tg_guard_describe(struct file *file, struct tg_guard_program_of *of)
{
	__builtin_memset(of->content, 0, sizeof of->content);
	tg_guard_content_of(file, of->content);
	if (bpf_d_path(&file->f_path, of->path, sizeof of->path) < 0)
		of->path[0] = 0;
}

/* Reports an exec that no rule allows, with the path of what is executed. */
static __always_inline void
tg_guard_report_exec(struct linux_binprm *bprm, const struct tg_guard_question *question,
		     const __u32 *target, const struct tg_guard_program_of *caller, __u32 mode)
{
	struct tg_guard_event *event = tg_guard_begin_event(question, target, caller, mode);

	if (!event)
		return;
	if (bpf_d_path(&bprm->file->f_path, event->object, sizeof event->object) < 0)
		event->object[0] = 0;
	bpf_ringbuf_submit(event, 0);
}

/* Answers a question about what is executed. */
static __noinline void tg_guard_ask_of_program(const struct tg_guard_question *question,
					       const __u32 *target, struct tg_guard_answer *answer)
{
	void *table = tg_guard_table_for(answer);

	if (!table)
		return;
	tg_guard_find_caller(table, question, answer);
	tg_guard_begin(table, question, answer);
	answer->target = tg_guard_number(table, target);
	tg_guard_look_up(table, question, answer);
}

/* Checks what a guarded process executes. Each file of an exec comes here: a script, then its
 * interpreter. */
static __always_inline int tg_guard_check_exec(struct linux_binprm *bprm,
					       struct tg_guard_task *task, __u32 class, int first)
{
	struct tg_guard_question question = {.class = class, .call = TG_GUARD_EXEC};
	struct tg_guard_answer answer = {};
	__u32 target[TG_GUARD_WORDS] = {};
	struct tg_guard_program_of *caller = first ? &task->program : &task->next;

	question.history = READ_ONCE(task->history);
	__builtin_memcpy(question.caller, caller->content, sizeof question.caller);
	tg_guard_content_of(bprm->file, target);
	tg_guard_ask_of_program(&question, target, &answer);
	if (first && answer.allowed && answer.flags & TG_GUARD_FREE)
		task->flags |= TG_GUARD_NEXT_FREE;
	if (tg_guard_count(&question, target, &answer))
		tg_guard_report_exec(bprm, &question, target, caller, answer.mode);
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
	if (!class && !tg_guard_is_daemon(bpf_get_current_task_btf()->cred) &&
	    !tg_guard_enters_domain())
		return 0;
	task = tg_guard_make();
	if (!task)
		return -ENOMEM;
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

/* The class after the exec, whatever the domain is. */
static __always_inline __u32 tg_guard_next_class(struct linux_binprm *bprm,
						 const struct tg_guard_task *task)
{
	struct cred *new = bprm->cred;
	const struct cred *old = bpf_get_current_task_btf()->cred;
	__u32 class = task ? task->class & ~TG_GUARD_IN_DOMAIN : 0;

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
	__u32 class = tg_guard_next_class(bprm, task), domain = tg_guard_take_domain();

	if (!task && !class && !domain)
		return 0;
	task = tg_guard_make();
	if (!task)
		return -ENOMEM;
	if ((class || domain) && !(task->flags & TG_GUARD_NEXT)) {
		tg_guard_describe(file, &task->next);
		task->flags |= TG_GUARD_NEXT;
	}
	if (!class && task->flags & TG_GUARD_NEXT && !(task->flags & TG_GUARD_NEXT_FREE) &&
	    tg_guard_is_daemon(bprm->cred) && tg_guard_begins(&task->next))
		class = TG_GUARD_BY_DAEMON;
	task->next_class = class | domain;
	/* A thread that executes something takes the place of the leader. */
	if (bpf_get_current_task_btf()->group_leader != bpf_get_current_task_btf())
		return tg_guard_enter(TG_KERNEL_ADDRESS(bpf_get_current_task_btf()), task);
	return 0;
}

/* Nothing can fail any more. */
SEC("lsm/bprm_committing_creds") int BPF_PROG(guard_commit, struct linux_binprm *bprm)
{
	struct tg_guard_task *task = tg_guard_current();

	if (!task)
		return 0;
	if (!task->next_class) {
		tg_guard_forget(tg_guard_own_key());
		return 0;
	}
	task->class = task->next_class;
	task->flags = 0;
	task->history = 0;
	task->number = task->known = 0;
	__builtin_memcpy(&task->program, &task->next, sizeof task->program);
	return 0;
}

/* A child is guarded as its parent is. What was at its address before is forgotten here as well,
 * because the kernel runs no program within itself, and so misses some ends of tasks. */
SEC("lsm/task_alloc") int BPF_PROG(guard_fork, struct task_struct *child, unsigned long flags)
{
	struct tg_guard_task *task = tg_guard_current(), *made;
	__u64 key = TG_KERNEL_ADDRESS(child);

	if (flags & CLONE_THREAD)
		return 0;
	if (!task || !task->class) {
		tg_guard_forget(key);
		return 0;
	}
	if (tg_guard_enter(key, task))
		return -ENOMEM;
	/* Another thread may have written this during the copy. */
	made = tg_guard_find(key);
	if (made)
		made->number = 0;
	return 0;
}

SEC("lsm/task_free") int BPF_PROG(guard_free, struct task_struct *task)
{
	__u64 key = TG_KERNEL_ADDRESS(task);

	tg_guard_forget(key);
	/* Its last exec may have failed. */
	if (bpf_map_lookup_elem(&guard_domains, &key))
		bpf_map_delete_elem(&guard_domains, &key);
	return 0;
}

/* A process that runs already becomes guarded, if the daemon has found it so. */
SEC("iter/task") int guard_adopt(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct tg_guard_task *found, *known;
	__u64 key;
	__u32 number;

	if (!task || task->pid != task->tgid)
		return 0;
	number = task->tgid;
	key = TG_KERNEL_ADDRESS(task);
	found = bpf_map_lookup_elem(&guard_running, &number);
	if (!found)
		return 0;
	known = bpf_map_lookup_elem(&guard_processes, &key);
	if (known)
		__sync_fetch_and_or(&known->class, found->class & TG_GUARD_IN_DOMAIN);
	else
		tg_guard_enter(key, found);
	return 0;
}

#endif
