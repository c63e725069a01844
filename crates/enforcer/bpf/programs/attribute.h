/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's own contexts, for which SELinux has /proc/thread-self/attr. The daemon returns
 * the SID of a context. The thread then gives it to itself by prctl(2), so that on every
 * kernel it is the context of this thread, and nothing changes between the decision and the
 * act.
 */
#ifndef TOLLGATE_PROGRAMS_ATTRIBUTE_H
#define TOLLGATE_PROGRAMS_ATTRIBUTE_H

#include "../address.h"
#include "../bounds.h"
#include "../cache.h"
#include "../compiler.h"
#include "../contexts.h"
#include "../credential_put.h"
#include "../descriptor.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../process.h"
#include "../state.h"
#include "../subject.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"

#define CAP_MAC_ADMIN 33

/* The permission of class process that setting each attribute needs (selinux_setprocattr). */
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
 * Whether the current thread may become `new`. Returns -EAGAIN if another task, perhaps only a
 * reader of /proc, holds the address space. current_is_single_threaded would find that out by
 * a walk over all processes.
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

/* Records that the threads of the current process may have different contexts, because the
 * daemon knows a process by its leader only. Returns 0 or -ENOMEM. */
static __always_inline int tg_mix(void)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (BPF_CORE_READ(current, signal, live.counter) == 1)
		return 0;
	struct tg_task *leader = tg_make_task(current->group_leader);

	if (!leader)
		return -ENOMEM;
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

/*
 * Whether the current thread may use files that are not in its table, or that are added
 * unseen: an io_uring has files of its own, and another process may share the table. Threads
 * do not count: what one of them may read or write, the others can as well, because they share
 * memory.
 */
static __always_inline int tg_has_unseen_files(void)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (bpf_core_field_exists(current->io_uring) && BPF_CORE_READ(current, io_uring))
		return 1;
	return BPF_CORE_READ(current, files, count.counter) > 1 &&
	       BPF_CORE_READ(current, signal, live.counter) == 1;
}

/*
 * A thread takes its descriptors along into the domain that it enters. SELinux checks each
 * use. If that is not done here (state.inherit), a thread may not enter a domain that may not
 * use one of its descriptors.
 */
static __always_inline int tg_may_keep(__u32 new)
{
	if (READ_ONCE(state.inherit) || tg_is_unconfined(new))
		return 0;
	/* It is not known who opened them. */
	if (tg_has_unseen_files() &&
	    tg_ask_process(new, SECINITSID_UNLABELED, SECCLASS_FD, FD__USE))
		return -EACCES;
	return tg_check_table(new, 0);
}

/*
 * Whether the current thread has its credentials for itself, as both of its own. A file keeps
 * the credentials that it was opened with, and its opener is known by them, so they must not
 * change. */
static __always_inline int tg_has_own_cred(void)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), cred, usage.counter) == 2;
}

/* The current thread is another subject from here on. Returns 0 or -ENOMEM. */
static __always_inline int tg_become(struct tg_task *task, __u32 sid)
{
	__u64 epoch = READ_ONCE(state.epoch);
	__u64 subject = sid | (tg_is_unconfined(sid) ? TG_UNCONFINED : 0);
	const struct cred *cred = bpf_get_current_task_btf()->cred;

	if (tg_mix() || tg_turn_cred(TG_ADDRESS(cred), sid))
		return -ENOMEM;
	tg_make_live(sid);
	WRITE_ONCE(task->sid, sid);
	tg_remember_task(bpf_get_current_task(), subject, epoch);
	tg_forget_row(TG_KEY(bpf_get_current_task_btf()));
	return 0;
}

static __always_inline int tg_set_attribute(__u32 attribute, __u32 sid)
{
	struct tg_task *task = tg_make_task(bpf_get_current_task_btf());

	if (!task)
		return -ENOMEM;
	if (attribute == TG_ATTRIBUTE_CURRENT)
		return tg_become(task, sid) ? -ENOMEM : -EALREADY;
	if (attribute == TG_ATTRIBUTE_EXEC)
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

/* Whether a SID that a task has named stands for a context. */
TG_FUNCTION int tg_has_context(__u32 sid)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	/* Only the daemon makes a canary. */
	return generation && sid != TG_SID_CANARY && tg_context_of(generation, sid).type;
}

/* Whether a SID stands for a context that the policy in force does not have: what has it is
 * unlabelled until a policy has it (security_context_to_sid_force). */
TG_FUNCTION int tg_is_undefined(__u32 sid)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (!generation || sid < TG_FIRST_SID)
		return 0;
	union tg_context_words own = {.context = tg_context_of(generation, sid)};
	union tg_context_words unlabelled = {
		.context = tg_context_of(generation, SECINITSID_UNLABELED)};

	return own.word[0] == unlabelled.word[0] && own.word[1] == unlabelled.word[1];
}

/* has_cap_mac_admin: whether the current thread may give labels that no policy has yet. */
static __always_inline int tg_may_mac_admin(__u64 subject)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 effective = 0;

	if (subject & TG_UNCONFINED)
		return 1;
	bpf_core_read(&effective, sizeof effective, &current->cred->cap_effective);
	if (!(effective >> CAP_MAC_ADMIN & 1) || BPF_CORE_READ(current, cred, user_ns, level))
		return 0;
	return !tg_ask_process(subject & 0xffff, subject & 0xffff, SECCLASS_CAPABILITY2,
			       CAPABILITY2__MAC_ADMIN);
}

/* Only unconfined root may set this, because the thread's children are permissive, too. */
static __always_inline int tg_may_be_permissive(__u64 subject)
{
	return subject & TG_UNCONFINED && !(__u32)bpf_get_current_uid_gid();
}

/* selinux_setprocattr. For options of others, the hook's default is returned. */
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
		return tg_set_attribute(attribute, sid);
	}
	if (!tg_attribute_permission(attribute) || sid >= TG_SIDS)
		return -EINVAL;
	if (sid ? !tg_has_context(sid) : attribute == TG_ATTRIBUTE_CURRENT)
		return -EINVAL;
	if (sid && tg_is_undefined(sid) &&
	    (attribute != TG_ATTRIBUTE_FSCREATE || !tg_may_mac_admin(subject)))
		return -EINVAL;
	if (attribute == TG_ATTRIBUTE_CURRENT && !tg_has_own_cred())
		return -EAGAIN;
	if (!(subject & TG_UNCONFINED)) {
		int result = tg_check_attribute(subject & 0xffff, attribute, sid);

		if (result)
			return result == -EPERM ? -EPERM : result == -EAGAIN ? -EAGAIN : -EACCES;
	}
	if (attribute == TG_ATTRIBUTE_CURRENT && sid != (subject & 0xffff) && tg_may_keep(sid))
		return -EACCES;
	return tg_set_attribute(attribute, sid) == -ENOMEM ? -ENOMEM : -EALREADY;
}

#endif
