/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's own contexts: what SELinux has /proc/thread-self/attr for. The daemon says which SID a
 * context has; the thread gives it to itself by prctl(2), so that it is this thread's on every
 * kernel, and that nothing changes between decision and deed.
 */
#ifndef TOLLGATE_ATTRIBUTE_H
#define TOLLGATE_ATTRIBUTE_H

#include "bounds.h"
#include "exec.h"
#include "process.h"

/* The permission of class process that each attribute takes (selinux_setprocattr). */
static __always_inline __u32 tg_attribute_permission(__u32 attribute)
{
	switch (attribute) {
	case TG_ATTRIBUTE_CURRENT:
		return PROCESS__SETCURRENT;
	case TG_ATTRIBUTE_EXEC:
		return PROCESS__SETEXEC;
	case TG_ATTRIBUTE_FSCREATE:
		return PROCESS__SETFSCREATE;
	case TG_ATTRIBUTE_KEYCREATE:
		return PROCESS__SETKEYCREATE;
	case TG_ATTRIBUTE_SOCKCREATE:
		return PROCESS__SETSOCKCREATE;
	default:
		return 0;
	}
}

/*
 * Whether the current thread may become `new`. -EAGAIN: somebody, perhaps only a reader of /proc,
 * holds the address space, which current_is_single_threaded would find out by a walk over all
 * processes.
 */
static __always_inline int tg_check_dyntransition(__u32 old, __u32 new)
{
	struct task_struct *current = bpf_get_current_task_btf();
	int threads = BPF_CORE_READ(current, signal, live.counter);
	int users = BPF_CORE_READ(current, mm, mm_users.counter);
	__u32 tracer;

	if ((threads != 1 || users != 1) && tg_bounded_transition(old, new))
		return threads == 1 ? -EAGAIN : -EPERM;
	if (tg_ask_process(old, new, SECCLASS_PROCESS, PROCESS__DYNTRANSITION))
		return -EACCES;
	tracer = tg_tracer();
	if (tracer && !tg_is_unconfined(tracer) &&
	    tg_ask_process(tracer, new, SECCLASS_PROCESS, PROCESS__PTRACE))
		return -EACCES;
	return 0;
}

/* Remembers that the threads of the current process may differ: the daemon knows a process by its
 * leader only. 0 or -ENOMEM. */
static __always_inline int tg_mix(void)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (BPF_CORE_READ(current, signal, live.counter) == 1)
		return 0;
	struct tg_task *leader = bpf_task_storage_get(&tasks, current->group_leader, 0,
						      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!leader) {
		tg_failed(TG_FAILED_TASK_STORAGE);
		return -ENOMEM;
	}
	__sync_fetch_and_or(&leader->flags, TG_TASK_MIXED);
	return 0;
}

static __always_inline int tg_check_attribute(__u32 subject, __u32 attribute, __u32 sid)
{
	__u32 permission = tg_attribute_permission(attribute);

	if (tg_ask_process(subject, subject, SECCLASS_PROCESS, permission))
		return -EACCES;
	if (attribute == TG_ATTRIBUTE_KEYCREATE && sid &&
	    tg_ask_process(subject, sid, SECCLASS_KEY, KEY__CREATE))
		return -EACCES;
	if (attribute == TG_ATTRIBUTE_CURRENT)
		return tg_check_dyntransition(subject, sid);
	return 0;
}

/* The current thread is another subject from here on. */
static __always_inline void tg_become(struct tg_task *task, __u32 sid)
{
	__u64 epoch = READ_ONCE(state.epoch);
	__u64 subject = sid | (tg_is_unconfined(sid) ? TG_UNCONFINED : 0);

	tg_make_live(sid);
	WRITE_ONCE(task->sid, sid);
	tg_remember_cred(TG_ADDRESS(bpf_get_current_task_btf()->cred), sid);
	tg_remember_task(bpf_get_current_task(), subject, epoch);
}

static __always_inline int tg_set_attribute(__u32 subject, __u32 attribute, __u32 sid)
{
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0,
						    BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task) {
		tg_failed(TG_FAILED_TASK_STORAGE);
		return -ENOMEM;
	}
	if (attribute == TG_ATTRIBUTE_CURRENT && tg_mix())
		return -ENOMEM;
	if (!task->sid)
		task->sid = subject;
	if (attribute == TG_ATTRIBUTE_CURRENT)
		tg_become(task, sid);
	else if (attribute == TG_ATTRIBUTE_EXEC)
		task->exec_sid = sid;
	else if (attribute == TG_ATTRIBUTE_FSCREATE)
		task->create_sid = sid;
	else if (attribute == TG_ATTRIBUTE_KEYCREATE)
		task->key_create_sid = sid;
	else if (attribute == TG_ATTRIBUTE_SOCKCREATE)
		task->socket_create_sid = sid;
	else if (attribute == TG_ATTRIBUTE_PERMISSIVE)
		task->flags =
			sid ? task->flags | TG_TASK_PERMISSIVE : task->flags & ~TG_TASK_PERMISSIVE;
	return -EALREADY;
}

/* Whether a SID that somebody has named stands for a context. */
TG_FUNCTION int tg_has_context(__u32 sid)
{
	struct tg_generation *generation = tg_generation(0);

	return generation && tg_context_of(generation, sid).type;
}

/* Only root, unconfined, may have denials granted: what it starts then could be anybody's. */
static __always_inline int tg_may_be_permissive(__u64 subject)
{
	return subject & TG_UNCONFINED && !(__u32)bpf_get_current_uid_gid();
}

/* selinux_setprocattr. What is returned for other options than ours is the hook's default. */
SEC("lsm/task_prctl")
int BPF_PROG(task_prctl, int option, unsigned long attribute, unsigned long sid)
{
	__u64 subject;

	if ((__u32)option != TG_PRCTL)
		return 0;
	subject = tg_task_subject();
	if (attribute == TG_ATTRIBUTE_PERMISSIVE) {
		if (!tg_may_be_permissive(subject))
			return -EPERM;
		return tg_set_attribute(subject & 0xffff, attribute, sid);
	}
	if (!tg_attribute_permission(attribute) || sid >= TG_SIDS)
		return -EINVAL;
	if (sid ? !tg_has_context(sid) : attribute == TG_ATTRIBUTE_CURRENT)
		return -EINVAL;
	if (!(subject & TG_UNCONFINED)) {
		int result = tg_check_attribute(subject & 0xffff, attribute, sid);

		if (result)
			return result == -EPERM ? -EPERM : result == -EAGAIN ? -EAGAIN : -EACCES;
	}
	return tg_set_attribute(subject & 0xffff, attribute, sid) == -ENOMEM ? -ENOMEM : -EALREADY;
}

#endif
