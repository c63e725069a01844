/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System V IPC: message queues, semaphores, shared memory. POSIX message queues are files on a
 * file system of their own.
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
#include "../transition.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "system.h"

/* Each permission has the same bit in all classes of System V objects. */
_Static_assert(SEM__CREATE == MSGQ__CREATE && SEM__CREATE == SHM__CREATE &&
		       SEM__UNIX_WRITE == MSGQ__UNIX_WRITE && SEM__UNIX_WRITE == SHM__UNIX_WRITE &&
		       SEM__UNIX_WRITE == IPC__UNIX_WRITE && SEM__DESTROY == MSGQ__DESTROY,
	       "classes.txt");

static __noinline int tg_ask_ipc(__u32 source, __u32 target, __u32 class, __u32 av, __u32 key)
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

	return tg_ask(&request);
}

/* ipc_has_perm */
static __always_inline int tg_check_ipc(struct kern_ipc_perm *object, __u32 class, __u32 av)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	return tg_ask_ipc(subject, tg_find_labelled(TG_KERNEL_ADDRESS(object)).sid, class, av,
			  object->key);
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

/* The class of a System V object. An object of the machine has no entry, so it is looked up in
 * the tables of the task's namespace (include/linux/ipc_namespace.h). */
static __noinline __u32 tg_ipc_class(struct kern_ipc_perm *object)
{
	__u64 address = TG_KERNEL_ADDRESS(object);
	__u32 class = tg_find_labelled(address).class;

	if (class)
		return class;
	if (TG_IS_IPC(0, object, address))
		return SECCLASS_SEM;
	if (TG_IS_IPC(1, object, address))
		return SECCLASS_MSGQ;
	return TG_IS_IPC(2, object, address) ? SECCLASS_SHM : SECCLASS_IPC;
}

/* selinux_ipc_permission */
SEC("lsm/ipc_permission") int BPF_PROG(ipc_permission, struct kern_ipc_perm *object, short flag)
{
	__u32 av = 0;

	if (flag & 0444)
		av |= IPC__UNIX_READ;
	if (flag & 0222)
		av |= IPC__UNIX_WRITE;
	if (!av || tg_subject() & TG_UNCONFINED)
		return 0;
	return tg_check_ipc(object, tg_ipc_class(object), av);
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

SEC("lsm/msg_queue_alloc_security")
int BPF_PROG(msg_queue_alloc_security, struct kern_ipc_perm *queue)
{
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

/* The label of a message that is sent. A message that has waited keeps its first label. 0: it
 * cannot have one. */
static __noinline __u32 tg_make_message_label(__u64 subject, __u32 queue, __u64 message)
{
	struct tg_labelled *known = 0;
	__u32 sid = 0;

	if (!READ_ONCE(state.objects_left))
		known = bpf_map_lookup_elem(&objects, &message);
	if (known)
		return known->sid;
	if (tg_transition(subject & 0xffff, queue, SECCLASS_MSG, 0, &sid))
		return 0;
	return tg_put_labelled(message, sid, SECCLASS_MSG) ? 0 : sid;
}

/* selinux_msg_queue_msgsnd. A message of the machine needs no entry: its label follows from
 * that of its queue. */
SEC("lsm/msg_queue_msgsnd")
int BPF_PROG(msg_queue_msgsnd, struct kern_ipc_perm *queue, struct msg_msg *message, int flags)
{
	__u64 subject = tg_subject(), address = TG_KERNEL_ADDRESS(message);
	__u32 to = tg_find_labelled(TG_KERNEL_ADDRESS(queue)).sid, key = queue->key, sid;

	if (subject == (TG_SID_MACHINE | TG_UNCONFINED)) {
		if (READ_ONCE(state.objects_left))
			tg_forget_labelled(address);
		return 0;
	}
	sid = tg_make_message_label(subject, to, address);
	if (subject & TG_UNCONFINED)
		return 0;
	if (!sid || tg_ask_ipc(subject, to, SECCLASS_MSGQ, MSGQ__WRITE, key) ||
	    tg_ask_ipc(subject, sid, SECCLASS_MSG, MSG__SEND, key))
		return -EACCES;
	return tg_ask_ipc(sid, to, SECCLASS_MSGQ, MSGQ__ENQUEUE, key);
}

/* The label of a message that is received. */
static __noinline __u32 tg_message_sid(__u32 queue, __u64 message)
{
	struct tg_labelled *known = bpf_map_lookup_elem(&objects, &message);
	__u32 sid = SECINITSID_UNLABELED;

	if (known)
		return known->sid;
	tg_transition(TG_SID_MACHINE, queue, SECCLASS_MSG, 0, &sid);
	return sid;
}

/* selinux_msg_queue_msgrcv: `receiver` may wait while the current task sends. */
SEC("lsm/msg_queue_msgrcv")
int BPF_PROG(msg_queue_msgrcv, struct kern_ipc_perm *queue, struct msg_msg *message,
	     struct task_struct *receiver)
{
	__u32 sid = tg_sid_of(receiver), from, key;

	if (tg_is_unconfined(sid))
		return 0;
	from = tg_find_labelled(TG_KERNEL_ADDRESS(queue)).sid;
	key = queue->key;
	if (tg_ask_ipc(sid, from, SECCLASS_MSGQ, MSGQ__READ, key))
		return -EACCES;
	return tg_ask_ipc(sid, tg_message_sid(from, TG_KERNEL_ADDRESS(message)), SECCLASS_MSG,
			  MSG__RECEIVE, key);
}

SEC("lsm/msg_msg_free_security") int BPF_PROG(msg_msg_free_security, struct msg_msg *message)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(message));
	return 0;
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
