/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes: how they are made, and what they may do to others. */
#ifndef TOLLGATE_PROGRAMS_PROCESS_H
#define TOLLGATE_PROGRAMS_PROCESS_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../credential.h"
#include "../itself.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../plain_task.h"
#include "../process.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "../survival.h"
#include "../task_access.h"
#include "classes.h"
#include "enforcer.h"

/* What a child of the current task, which is at `current`, is if it is plain (TG_PLAIN); 0: it
 * needs storage. A plain task has no more than that: what a task gets beside it, it gets after it
 * has stopped being plain (tg_make_task). */
static __always_inline __u64 tg_plain_child(__u64 current)
{
	__u64 plain = tg_find_plain(current);
	const struct tg_task *own;

	if (plain)
		return plain;
	own = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (!own || own->flags & ~TG_TASK_MIXED ||
	    own->exec_sid | own->create_sid | own->key_create_sid | own->socket_create_sid)
		return 0;
	return TG_PLAIN(own->sid & 0xffff, own->old_sid & 0xffff);
}

/* The child gets what its maker has. Returns 0 or -ENOMEM. */
static __noinline int tg_copy_task(struct task_struct *child)
{
	struct tg_task *own = tg_make_task(bpf_get_current_task_btf());
	struct tg_task *new =
		bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!own || !new) {
		tg_failed(TG_FAILED_TASK_STORAGE);
		return -ENOMEM;
	}
	/* Of a task that was at this address, and whose end was missed (plain_task.h). */
	tg_forget_plain(tg_task_address(child));
	*new = *own;
	new->next_sid = 0;
	new->flags &= ~(TG_TASK_MIXED | TG_TASK_REMADE);
	new->creation.dentry = 0;
	new->create_cred = 0;
	new->made = 0;
	/* It would not know labels that its maker sets later. */
	if (child->flags & PF_IO_WORKER)
		new->create_sid = 0;
	return 0;
}

static __noinline int tg_check_fork(__u32 sid)
{
	struct tg_request request;

	tg_learn_to_themselves(TG_ITSELF_PROCESS, SECCLASS_PROCESS, TG_MANAGER_PROCESS, &request);
	if (tg_is_cached(sid, sid, SECCLASS_PROCESS, PROCESS__FORK))
		return 0;
	request = (struct tg_request){
		.source = sid,
		.target = sid,
		.class = SECCLASS_PROCESS,
		.av = PROCESS__FORK,
		.manager = TG_MANAGER_PROCESS,
	};

	return tg_ask(&request);
}

/* selinux_task_alloc: checks fork. The child is labelled before it runs. */
SEC("lsm/task_alloc") int BPF_PROG(task_alloc, struct task_struct *child, unsigned long flags)
{
	__u64 epoch = READ_ONCE(state.epoch), current = bpf_get_current_task();
	__u64 subject = tg_task_subject_at(current), address = tg_task_address(child);
	__u32 sid = subject & 0xffff;

	tg_forget_row(TG_KEY(child));
	if (sid != TG_SID_MACHINE) {
		__u64 plain = tg_plain_child(current);

		if ((!plain || !tg_put_plain(address, plain)) && tg_copy_task(child))
			return -ENOMEM;
	}
	tg_remember_task(address, subject, epoch);
	/* What all others may, the canary may not: it tests whether this hook runs. */
	if (subject & TG_UNCONFINED ||
	    (sid != TG_SID_CANARY && tg_all_may_to_themselves(TG_ITSELF_PROCESS, PROCESS__FORK)))
		return 0;
	return tg_check_fork(sid);
}

SEC("lsm/task_free") int BPF_PROG(task_free, struct task_struct *task)
{
	tg_forget_plain(tg_task_address(task));
	return 0;
}

SEC("lsm/task_setpgid") int BPF_PROG(task_setpgid, struct task_struct *task, int group)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETPGID);
}

SEC("lsm/task_getpgid") int BPF_PROG(task_getpgid, struct task_struct *task)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__GETPGID);
}

SEC("lsm/task_getsid") int BPF_PROG(task_getsid, struct task_struct *task)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__GETSESSION);
}

SEC("lsm/task_setnice") int BPF_PROG(task_setnice, struct task_struct *task, int nice)
{
	return tg_check_daemon(task) ? -EACCES
				     : tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETSCHED);
}

SEC("lsm/task_setioprio") int BPF_PROG(task_setioprio, struct task_struct *task, int priority)
{
	return tg_check_daemon(task) ? -EACCES
				     : tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETSCHED);
}

SEC("lsm/task_getioprio") int BPF_PROG(task_getioprio, struct task_struct *task)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__GETSCHED);
}

SEC("lsm/task_setscheduler") int BPF_PROG(task_setscheduler, struct task_struct *task)
{
	return tg_check_daemon(task) ? -EACCES
				     : tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETSCHED);
}

SEC("lsm/task_getscheduler") int BPF_PROG(task_getscheduler, struct task_struct *task)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__GETSCHED);
}

SEC("lsm/task_movememory") int BPF_PROG(task_movememory, struct task_struct *task)
{
	return tg_check_daemon(task) ? -EACCES
				     : tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETSCHED);
}

#define LSM_PRLIMIT_READ 1
#define LSM_PRLIMIT_WRITE 2

/* selinux_task_prlimit: the limits of another process, of which only the credentials are known. */
SEC("lsm/task_prlimit")
int BPF_PROG(task_prlimit, const struct cred *cred, const struct cred *target, unsigned int flags)
{
	__u64 subject = tg_direct_subject();
	__u32 av = 0;

	if (subject & TG_UNCONFINED)
		return 0;
	if (flags & LSM_PRLIMIT_READ)
		av |= PROCESS__GETRLIMIT;
	if (flags & LSM_PRLIMIT_WRITE)
		av |= PROCESS__SETRLIMIT;
	if (!av)
		return 0;
	return tg_ask_process(subject, tg_cred_sid(TG_ADDRESS(target)), SECCLASS_PROCESS, av);
}

/* selinux_task_setrlimit: a change of a hard limit. */
SEC("lsm/task_setrlimit")
int BPF_PROG(task_setrlimit, struct task_struct *task, unsigned int resource, struct rlimit *limit)
{
	struct rlimit old = {};

	bpf_core_read(&old, sizeof old, &task->signal->rlim[resource & 15]);
	if (tg_check_daemon(task))
		return -EACCES;
	if (old.rlim_max == limit->rlim_max)
		return 0;
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__SETRLIMIT);
}

/* A USB device has finished what a process waits for (kill_pid_usb_asyncio). The task that
 * requested this sends the signal, whatever task was interrupted. */
static __noinline int tg_kill_for(const struct cred *cred, struct task_struct *task, __u32 av)
{
	__u32 sid = tg_cred_sid(TG_ADDRESS(cred));
	struct tg_request request = {
		.source = sid,
		.target = SECINITSID_SECURITY,
		.class = SECCLASS_SECURITY,
		.av = SECURITY__SETENFORCE,
		.manager = TG_MANAGER_OTHER,
	};

	if (tg_is_unconfined(sid) || (tg_is_daemon(task) && tg_ask(&request)))
		return tg_is_unconfined(sid) ? 0 : -EACCES;
	request = (struct tg_request){
		.source = sid,
		.target = tg_sid_of(task),
		.class = SECCLASS_PROCESS,
		.av = av,
		.manager = TG_MANAGER_PROCESS,
	};

	return tg_ask(&request);
}

/* selinux_task_kill. If every confined subject may send any signal, it does not matter which, and
 * for whom. */
SEC("lsm/task_kill")
int BPF_PROG(task_kill, struct task_struct *task, struct kernel_siginfo *info, int signal,
	     const struct cred *cred)
{
	if (tg_all_may_to_task(task, TG_TASK_SIGNALS))
		return 0;
	if (!TG_IS_NULL(cred))
		return tg_kill_for(cred, task, tg_signal_av(signal));
	return signal ? tg_check_influence(task, SECCLASS_PROCESS, tg_signal_av(signal))
		      : tg_check_task(task, SECCLASS_PROCESS, PROCESS__SIGNULL);
}

#define PTRACE_MODE_READ 0x1

/* selinux_ptrace_access_check */
SEC("lsm/ptrace_access_check")
int BPF_PROG(ptrace_access_check, struct task_struct *task, unsigned int mode)
{
	__u32 reads = mode & PTRACE_MODE_READ;

	if (tg_all_may_to_task(task, reads ? TG_TASK_READ : PROCESS__PTRACE))
		return 0;
	return reads ? tg_check_task(task, SECCLASS_FILE, FILE__READ)
		     : tg_check_influence(task, SECCLASS_PROCESS, PROCESS__PTRACE);
}

/* selinux_ptrace_traceme: the parent will trace the current task. */
SEC("lsm/ptrace_traceme") int BPF_PROG(ptrace_traceme, struct task_struct *parent)
{
	__u64 tracer = tg_subject_in(parent);

	if (tracer & TG_UNCONFINED)
		return 0;
	return tg_ask_process(tracer & 0xffff, tg_direct_subject() & 0xffff, SECCLASS_PROCESS,
			      PROCESS__PTRACE);
}

SEC("lsm/capget") int BPF_PROG(capget, struct task_struct *task)
{
	return tg_check_task(task, SECCLASS_PROCESS, PROCESS__GETCAP);
}

SEC("lsm/capset") int BPF_PROG(capset, struct cred *new, const struct cred *old)
{
	return tg_check_task(bpf_get_current_task_btf(), SECCLASS_PROCESS, PROCESS__SETCAP);
}

#endif
