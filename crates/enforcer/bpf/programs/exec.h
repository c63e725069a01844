/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The domain of a process that executes a file. bprm_creds_for_exec decides, before the kernel
 * reads the file: the domain of a script depends on the script alone, and not on its
 * interpreter. bprm_committing_creds puts the decision in force, when nothing can fail any
 * more. The new program is mapped with the new label.
 *
 * SELinux does four things then that no BPF program can do: it closes descriptors that the new
 * domain may not use (here the exec is denied: descriptor.h), resets soft limits without
 * rlimitinh, resets signals and timers without siginh, and clears PER_CLEAR_ON_SETID in the
 * personality.
 */
#ifndef TOLLGATE_PROGRAMS_EXEC_H
#define TOLLGATE_PROGRAMS_EXEC_H

#include "../address.h"
#include "../ask.h"
#include "../bounds.h"
#include "../cache.h"
#include "../compiler.h"
#include "../container.h"
#include "../contexts.h"
#include "../credential.h"
#include "../credential_put.h"
#include "../descriptor.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../object.h"
#include "../process.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "../transition.h"
#include "../unit.h"
#include "classes.h"
#include "enforcer.h"

struct tg_exec {
	__u32 old, new, file; /* SIDs */
	__u32 unsafe;	      /* LSM_UNSAFE_* */
};

/* in_userns: whether the current task's user namespace is within that of the file system. */
static __always_inline int tg_in_user_namespace(struct vfsmount *mount)
{
	struct user_namespace *wanted = BPF_CORE_READ(mount, mnt_sb, s_user_ns);
	struct user_namespace *own = BPF_CORE_READ(bpf_get_current_task_btf(), cred, user_ns);
	int level = BPF_CORE_READ(wanted, level);

	/* The kernel nests user namespaces at most 32 deep. */
	for (__u32 i = 0; i <= 32; i++) {
		if (own == wanted)
			return 1;
		if (BPF_CORE_READ(own, level) <= level)
			break;
		own = BPF_CORE_READ(own, parent);
	}
	return 0;
}

/* The negation of mnt_may_suid: the mount is nosuid, of another mount namespace, or of a user
 * namespace that the task is not in. */
static __noinline int tg_is_nosuid(struct linux_binprm *bprm)
{
	struct vfsmount *mount = BPF_CORE_READ(bprm, file, f_path.mnt);
	struct mount *real = (void *)((char *)mount - bpf_core_field_offset(struct mount, mnt));

	return BPF_CORE_READ(mount, mnt_flags) & MNT_NOSUID ||
	       BPF_CORE_READ(real, mnt_ns) !=
		       BPF_CORE_READ(bpf_get_current_task_btf(), nsproxy, mnt_ns) ||
	       !tg_in_user_namespace(mount);
}

/* check_nnp_nosuid: whether the domain may change for a process with no_new_privs, or by a file
 * on a nosuid mount. Returns 0, -EPERM or -EACCES. */
static __noinline int tg_check_unsafe(struct tg_exec *exec, int nosuid)
{
	int nnp = exec->unsafe & LSM_UNSAFE_NO_NEW_PRIVS;

	if (!nnp && !nosuid)
		return 0;
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	if (generation && generation->capabilities >> TG_POLICYCAP_NNP_NOSUID_TRANSITION & 1) {
		struct tg_request request = {
			.source = exec->old,
			.target = exec->new,
			.class = SECCLASS_PROCESS2,
			.av = (nnp ? PROCESS2__NNP_TRANSITION : 0) |
			      (nosuid ? PROCESS2__NOSUID_TRANSITION : 0),
			.manager = TG_MANAGER_PROCESS,
		};

		if (!tg_ask(&request))
			return 0;
	}
	if (!tg_bounded_transition(exec->old, exec->new))
		return 0;
	return nnp ? -EPERM : -EACCES;
}

/* Whether a process may change its domain by executing this file. Returns 0, -EPERM or -EACCES.
 * Returns 1 if it may, and must trust nothing that it was given (AT_SECURE). */
static __noinline int tg_check_transition(const struct tg_exec *exec, __u64 inode, __u64 path)
{
	struct tg_request request = {
		.source = exec->old,
		.target = exec->new,
		.class = SECCLASS_PROCESS,
		.av = PROCESS__TRANSITION,
		.manager = TG_MANAGER_PROCESS,
		.object = TG_OBJECT_PATH,
		.inode = inode,
		.path = path,
	};
	__u32 tracer = 0;

	if (tg_ask(&request))
		return -EACCES;
	request.source = exec->new;
	request.target = exec->file;
	request.class = SECCLASS_FILE;
	request.av = FILE__ENTRYPOINT;
	if (tg_ask(&request))
		return -EACCES;
	request.object = TG_OBJECT_NONE;
	request.source = exec->old;
	request.target = exec->new;
	request.class = SECCLASS_PROCESS;
	request.av = PROCESS__SHARE;
	if (exec->unsafe & LSM_UNSAFE_SHARE && tg_ask(&request))
		return -EPERM;
	if (exec->unsafe & LSM_UNSAFE_PTRACE)
		tracer = tg_tracer();
	if (tracer && !tg_is_unconfined(tracer)) {
		request.source = tracer;
		request.av = PROCESS__PTRACE;
		if (tg_ask(&request))
			return -EPERM;
		request.source = exec->old;
	}
	request.av = PROCESS__NOATSECURE;
	return tg_ask(&request) ? 1 : 0;
}

/*
 * The SID after exec, in `exec->new`: what the process requested, or, for a process of the
 * machine, what its container or its unit says, or what the policy says. A transition that is not
 * allowed is an error if it was requested, and is otherwise not made. A transition from an
 * unconfined domain is always made, because it can only take permissions away.
 */
static __noinline int tg_new_domain(struct tg_exec *exec, __u32 wanted, int unconfined)
{
	exec->new = exec->old;
	if (wanted) {
		exec->new = wanted;
		return 0;
	}
	if (unconfined && READ_ONCE(state.containers)) {
		__u32 container = tg_container_domain(tg_current_cgroup());

		if (container) {
			exec->new = container;
			return 0;
		}
	}
	if (unconfined && READ_ONCE(state.units)) {
		int known = tg_unit_domain(tg_current_cgroup(), exec->file, &exec->new);

		if (known)
			return known < 0 ? -EACCES : 0;
	}
	if (tg_transition(exec->old, exec->file, SECCLASS_PROCESS, 0, &exec->new)) {
		exec->new = exec->old;
		if (!unconfined)
			return -EACCES;
	}
	return 0;
}

/* Tells the guard, if it runs, whether a process enters a domain that the policy marks as guarded.
 * Returns 0, or an error: without the guard it must not run there. */
TG_FUNCTION int tg_tell_guard(__u32 sid)
{
	__u32 zero = 0, one = 1, type = 0;
	__u64 thread = bpf_get_current_task();
	void *domains = bpf_map_lookup_elem(&to_guard, &zero);
	struct tg_generation *generation;

	if (!domains)
		return 0;
	generation = tg_find_generation(TG_IN_FORCE);
	if (generation)
		type = tg_context_of(generation, sid).type & (TG_TYPES - 1);
	if (type && generation->guarded[type >> 6] >> (type & 63) & 1)
		return bpf_map_update_elem(domains, &thread, &one, BPF_ANY);
	/* What an exec that failed has left. */
	if (bpf_map_lookup_elem(domains, &thread))
		bpf_map_delete_elem(domains, &thread);
	return 0;
}

/* selinux_bprm_creds_for_exec */
SEC("lsm/bprm_creds_for_exec") int BPF_PROG(bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tg_task *task = tg_own_task();
	struct inode *inode = bprm->file->f_inode;
	__u64 subject = tg_task_subject();
	struct tg_exec exec = {
		.old = subject & 0xffff,
		.file = tg_object_of(inode).sid,
		.unsafe = bprm->unsafe,
	};
	__u32 wanted = task ? task->exec_sid : 0;
	int unconfined = subject & TG_UNCONFINED ? 1 : 0, result;

	if (task)
		task->next_sid = 0;
	if (tg_new_domain(&exec, wanted, unconfined))
		return -EACCES;
	if (exec.new != exec.old && !unconfined) {
		result = tg_check_unsafe(&exec, tg_is_nosuid(bprm));
		if (result && wanted)
			return result == -EPERM ? -EPERM : -EACCES;
		if (result)
			exec.new = exec.old;
	}
	if (exec.new == exec.old) {
		result = unconfined ? 0
				    : tg_check_path(inode, &bprm->file->f_path,
						    FILE__EXECUTE_NO_TRANS, 0);
		if (result)
			return result;
		return tg_tell_guard(exec.new) ? -ENOMEM : 0;
	}
	if (!unconfined) {
		result = tg_check_transition(&exec, TG_ADDRESS(inode),
					     TG_ADDRESS(&bprm->file->f_path));
		if (result < 0)
			return result == -EPERM ? -EPERM : -EACCES;
		if (result)
			bpf_bprm_opts_set(bprm, BPF_F_BPRM_SECUREEXEC);
	}
	if (!task)
		task = tg_make_task(current);
	if (!task || tg_turn_cred(TG_ADDRESS(bprm->cred), exec.new))
		return -ENOMEM;
	if (tg_may_inherit(task, exec.new))
		return -EACCES;
	if (tg_tell_guard(exec.new))
		return -ENOMEM;
	task->next_sid = exec.new;
	return 0;
}

/* A plain task has executed a program in its own domain. */
static __always_inline void tg_note_exec(__u32 sid)
{
	__u64 current = bpf_get_current_task(), plain = tg_find_plain(current);

	if (plain && plain != TG_PLAIN(sid, sid))
		tg_put_plain(current, TG_PLAIN(sid, sid));
}

/* selinux_bprm_committing_creds: the process has its new domain from here on. */
SEC("lsm/bprm_committing_creds") int BPF_PROG(bprm_committing_creds, struct linux_binprm *bprm)
{
	__u64 epoch = READ_ONCE(state.epoch);
	struct tg_task *task = tg_own_task();
	__u32 new;

	if (!task) {
		new = tg_cred_sid(TG_ADDRESS(bprm->cred));
		if (new == (tg_task_subject() & 0xffff)) {
			tg_note_exec(new);
			return 0;
		}
		/* The storage with the decision of bprm_creds_for_exec was lost (tg_make_task). */
		task = tg_make_task(bpf_get_current_task_btf());
		if (!task)
			return 0;
		task->flags |= TG_TASK_TABLE_SHARED;
		task->next_sid = new;
	}
	new = task->next_sid;

	task->old_sid = task->sid;
	task->exec_sid = task->create_sid = task->key_create_sid = task->socket_create_sid = 0;
	task->flags &= ~(TG_TASK_MIXED | TG_TASK_REMADE);
	if (!new)
		return 0;
	__u64 subject = new | (tg_is_unconfined(new) ? TG_UNCONFINED : 0);

	tg_make_live(new);
	task->next_sid = 0;
	WRITE_ONCE(task->sid, new);
	tg_remember_task(bpf_get_current_task(), subject, epoch);
	tg_forget_row(TG_KEY(bpf_get_current_task_btf()));
	tg_check_shared_table(task, new);
	return 0;
}

#endif
