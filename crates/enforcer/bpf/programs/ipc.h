/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System V IPC: message queues (their messages are in message.h), semaphores, shared memory. POSIX
 * message queues are files on a file system of their own.
 */
#ifndef TOLLGATE_PROGRAMS_IPC_H
#define TOLLGATE_PROGRAMS_IPC_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../label_address.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../read.h"
#include "../request.h"
#include "../state.h"
#include "../subject.h"
#include "../use.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "system.h"

/* Each permission has the same bit in all classes of System V objects. */
_Static_assert(SEM__CREATE == MSGQ__CREATE && SEM__CREATE == SHM__CREATE &&
		       SEM__UNIX_WRITE == MSGQ__UNIX_WRITE && SEM__UNIX_WRITE == SHM__UNIX_WRITE &&
		       SEM__UNIX_WRITE == IPC__UNIX_WRITE && SEM__DESTROY == MSGQ__DESTROY,
	       "classes.txt");

/* Returns TG_GRANTED_ONCE if the answer may not be remembered. */
static __noinline enum tg_verdict tg_ask_ipc(__u32 source, __u32 target, __u32 class, __u32 av,
					     __u32 key)
{
	struct tg_request request = {
		.source = source,
		.target = target,
		.class = class,
		.av = av,
		.manager = TG_MANAGER_IPC,
		.object = TG_OBJECT_IPC,
		.number = key,
	};

	if (tg_ask(&request))
		return TG_DENIED;
	return av & ~request.allowed ? TG_GRANTED_ONCE : TG_GRANTED;
}

/* Whether the subject was granted these uses, which counts as an answer from a cache. */
static __always_inline int tg_was_used(const __u64 *used, __u64 subject, __u64 uses)
{
	if (!tg_has_use(used, subject, uses))
		return 0;
	tg_count_question(TG_MANAGER_IPC, 1);
	return 1;
}

static __always_inline __u64 tg_ipc_uses(__u32 av)
{
	return (av & IPC__UNIX_READ ? TG_USE_READ : 0) | (av & IPC__UNIX_WRITE ? TG_USE_WRITE : 0);
}

/* ipc_has_perm */
static __always_inline int tg_check_ipc(struct kern_ipc_perm *object, __u32 class, __u32 av)
{
	__u64 subject = tg_direct_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	return tg_ask_ipc(subject, tg_sid_at(TG_KERNEL_ADDRESS(object)), class, av, object->key) ==
			       TG_DENIED
		       ? -EACCES
		       : 0;
}

/* selinux_msg_queue_alloc_security and the like */
static __always_inline int tg_make_ipc(struct kern_ipc_perm *object, __u32 class)
{
	if (tg_make_labelled(TG_KERNEL_ADDRESS(object), class))
		return -ENOMEM;
	return tg_check_ipc(object, class, IPC__CREATE);
}

#define TG_IPC_INDEX 0x7fffu /* part of an identifier: the place in its table (ipcid_to_idx) */
#define TG_IPC_INDEX_EXTENDED 0xffffffu /* with the kernel's option ipcmni_extend */
#define TG_XA_LEVELS 5u

/* Whether a table of identifiers, which is an xarray, has the object at its place. */
static __noinline int tg_is_listed(__u64 entry, __u32 index, __u64 address)
{
	TG_ROLL
	for (__u32 level = 0; level < TG_XA_LEVELS; level++) {
		if ((entry & 3) != 2) /* xa_is_node */
			break;
		__u64 node = entry - 2;
		__u32 place = index >> (TG_MEMBER(node, struct xa_node, shift) & 31) & 63;

		entry = tg_read_word(node + bpf_core_field_offset(struct xa_node, slots) +
				     place * 8);
	}
	return entry == address;
}

#define TG_IS_IPC(kind, object, address)                                                           \
	({                                                                                         \
		struct nsproxy *spaces_ = bpf_get_current_task_btf()->nsproxy;                     \
		__u64 table_ =                                                                     \
			(__u64)BPF_CORE_READ(spaces_, ipc_ns, ids[kind].ipcs_idr.idr_rt.xa_head);  \
		tg_is_listed(table_, (object)->id &TG_IPC_INDEX, address) ||                       \
			tg_is_listed(table_, (object)->id &TG_IPC_INDEX_EXTENDED, address);        \
	})

/* The class of a System V object of the machine: it has no entry, so it is looked up in the tables
 * of the task's namespace (include/linux/ipc_namespace.h). */
static __noinline __u32 tg_ipc_class(struct kern_ipc_perm *object)
{
	__u64 address = TG_KERNEL_ADDRESS(object);

	if (TG_IS_IPC(0, object, address))
		return SECCLASS_SEM;
	if (TG_IS_IPC(1, object, address))
		return SECCLASS_MSGQ;
	return TG_IS_IPC(2, object, address) ? SECCLASS_SHM : SECCLASS_IPC;
}

static __always_inline int tg_check_use_of_ipc(struct kern_ipc_perm *object,
					       struct tg_labelled *label, __u64 subject, __u32 av)
{
	__u64 epoch = READ_ONCE(state.epoch);
	__u32 class = label ? label->class : tg_ipc_class(object);
	enum tg_verdict verdict =
		tg_ask_ipc(subject, tg_labelled_sid(label), class, av, object->key);

	if (verdict == TG_GRANTED && label)
		tg_remember_uses(av & IPC__UNIX_WRITE ? &label->writing : &label->reading, subject,
				 tg_ipc_uses(av), epoch);
	return verdict == TG_DENIED ? -EACCES : 0;
}

/* selinux_ipc_permission */
SEC("lsm/ipc_permission") int BPF_PROG(ipc_permission, struct kern_ipc_perm *object, short flag)
{
	__u32 av = (flag & 0444 ? IPC__UNIX_READ : 0) | (flag & 0222 ? IPC__UNIX_WRITE : 0);
	__u64 subject = tg_direct_subject();

	if (!av || subject & TG_UNCONFINED)
		return 0;
	struct tg_labelled *label = tg_find_labelled(TG_KERNEL_ADDRESS(object));

	if (label && tg_was_used(av & IPC__UNIX_WRITE ? &label->writing : &label->reading, subject,
				 tg_ipc_uses(av)))
		return 0;
	return tg_check_use_of_ipc(object, label, subject, av);
}

enum tg_ipc_command { /* include/uapi/linux: ipc.h, msg.h, sem.h, shm.h */
		      IPC_RMID,
		      IPC_SET,
		      IPC_STAT,
		      IPC_INFO,
		      MSG_STAT = 11,
		      MSG_INFO,
		      MSG_STAT_ANY,
		      GETPID = 11,
		      GETVAL,
		      GETALL,
		      GETNCNT,
		      GETZCNT,
		      SETVAL,
		      SETALL,
		      SEM_STAT,
		      SEM_INFO,
		      SEM_STAT_ANY,
		      SHM_LOCK = 11,
		      SHM_UNLOCK,
		      SHM_STAT,
		      SHM_INFO,
		      SHM_STAT_ANY,
};
#define SHM_RDONLY 010000

/* The permission for commands that all three have; 0: it is another command. */
static __always_inline __u32 tg_ipc_av(int command)
{
	switch (command) {
	case IPC_RMID:
		return IPC__DESTROY;
	case IPC_SET:
		return IPC__SETATTR;
	case IPC_STAT:
		return IPC__GETATTR | IPC__ASSOCIATE;
	}
	return 0;
}

/* Checks commands that concern no object; there may be none. */
static __always_inline int tg_check_ipc_info(void)
{
	return tg_check_system(SECINITSID_KERNEL, SYSTEM__IPC_INFO, 0);
}

static __always_inline void tg_note_messages(__u32 what)
{
	if (!(READ_ONCE(state.messages) & what))
		__sync_fetch_and_or(&state.messages, what);
}

/* Before the queue is found by others, those are told to look for labels. */
SEC("lsm/msg_queue_alloc_security")
int BPF_PROG(msg_queue_alloc_security, struct kern_ipc_perm *queue)
{
	if (tg_subject() != (TG_SID_MACHINE | TG_UNCONFINED))
		tg_note_messages(TG_MESSAGES_LABELLED);
	return tg_make_ipc(queue, SECCLASS_MSGQ);
}

SEC("lsm/msg_queue_free_security")
int BPF_PROG(msg_queue_free_security, struct kern_ipc_perm *queue)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(queue));
	return 0;
}

SEC("lsm/msg_queue_associate")
int BPF_PROG(msg_queue_associate, struct kern_ipc_perm *queue, int flags)
{
	return tg_check_ipc(queue, SECCLASS_MSGQ, MSGQ__ASSOCIATE);
}

/* selinux_msg_queue_msgctl */
SEC("lsm/msg_queue_msgctl")
int BPF_PROG(msg_queue_msgctl, struct kern_ipc_perm *queue, int command)
{
	__u32 av = tg_ipc_av(command);

	if (command == IPC_INFO || command == MSG_INFO)
		return tg_check_ipc_info();
	if (command == MSG_STAT || command == MSG_STAT_ANY)
		av = MSGQ__GETATTR | MSGQ__ASSOCIATE;
	return av ? tg_check_ipc(queue, SECCLASS_MSGQ, av) : 0;
}

SEC("lsm/sem_alloc_security") int BPF_PROG(sem_alloc_security, struct kern_ipc_perm *semaphores)
{
	return tg_make_ipc(semaphores, SECCLASS_SEM);
}

SEC("lsm/sem_free_security") int BPF_PROG(sem_free_security, struct kern_ipc_perm *semaphores)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(semaphores));
	return 0;
}

SEC("lsm/sem_associate")
int BPF_PROG(sem_associate, struct kern_ipc_perm *semaphores, int flags)
{
	return tg_check_ipc(semaphores, SECCLASS_SEM, SEM__ASSOCIATE);
}

static __always_inline __u32 tg_sem_av(int command)
{
	switch (command) {
	case GETPID:
	case GETNCNT:
	case GETZCNT:
		return SEM__GETATTR;
	case GETVAL:
	case GETALL:
		return SEM__READ;
	case SETVAL:
	case SETALL:
		return SEM__WRITE;
	case SEM_STAT:
	case SEM_STAT_ANY:
		return SEM__GETATTR | SEM__ASSOCIATE;
	}
	return tg_ipc_av(command);
}

/* selinux_sem_semctl */
SEC("lsm/sem_semctl") int BPF_PROG(sem_semctl, struct kern_ipc_perm *semaphores, int command)
{
	__u32 av = tg_sem_av(command);

	if (command == IPC_INFO || command == SEM_INFO)
		return tg_check_ipc_info();
	return av ? tg_check_ipc(semaphores, SECCLASS_SEM, av) : 0;
}

/* selinux_sem_semop */
SEC("lsm/sem_semop")
int BPF_PROG(sem_semop, struct kern_ipc_perm *semaphores, void *operations, unsigned int count,
	     int alter)
{
	return tg_check_ipc(semaphores, SECCLASS_SEM, alter ? SEM__READ | SEM__WRITE : SEM__READ);
}

SEC("lsm/shm_alloc_security") int BPF_PROG(shm_alloc_security, struct kern_ipc_perm *segment)
{
	return tg_make_ipc(segment, SECCLASS_SHM);
}

SEC("lsm/shm_free_security") int BPF_PROG(shm_free_security, struct kern_ipc_perm *segment)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(segment));
	return 0;
}

SEC("lsm/shm_associate") int BPF_PROG(shm_associate, struct kern_ipc_perm *segment, int flags)
{
	return tg_check_ipc(segment, SECCLASS_SHM, SHM__ASSOCIATE);
}

/* selinux_shm_shmctl */
SEC("lsm/shm_shmctl") int BPF_PROG(shm_shmctl, struct kern_ipc_perm *segment, int command)
{
	__u32 av = tg_ipc_av(command);

	if (command == IPC_INFO || command == SHM_INFO)
		return tg_check_ipc_info();
	if (command == SHM_STAT || command == SHM_STAT_ANY)
		av = SHM__GETATTR | SHM__ASSOCIATE;
	if (command == SHM_LOCK || command == SHM_UNLOCK)
		av = SHM__LOCK;
	return av ? tg_check_ipc(segment, SECCLASS_SHM, av) : 0;
}

/* selinux_shm_shmat */
SEC("lsm/shm_shmat")
int BPF_PROG(shm_shmat, struct kern_ipc_perm *segment, char *address, int flags)
{
	return tg_check_ipc(segment, SECCLASS_SHM,
			    flags & SHM_RDONLY ? SHM__READ : SHM__READ | SHM__WRITE);
}

#endif
