/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System V messages.
 *
 * The messages in a queue nearly always have one label, so the queue's entry has it
 * (tg_labelled.messages), and only a message with another label has an entry of its own. While a
 * queue is empty its label for messages may change. The kernel calls these hooks with the queue
 * locked (ipc_lock_object), so nothing is sent or received meanwhile. In a queue of the machine,
 * which has no entry, a message without entry is the machine's.
 */
#ifndef TOLLGATE_PROGRAMS_MESSAGE_H
#define TOLLGATE_PROGRAMS_MESSAGE_H

#include "../address.h"
#include "../cache.h"
#include "../kernel.h"
#include "../label_address.h"
#include "../libbpf.h"
#include "../maps.h"
#include "../state.h"
#include "../subject.h"
#include "../transition.h"
#include "../use.h"
#include "classes.h"
#include "decide.h"
#include "enforcer.h"
#include "ipc.h"

/* Whether messages may have entries: their own, or those of others that had their address. */
static __always_inline int tg_have_messages_entries(void)
{
	return READ_ONCE(state.messages) & TG_MESSAGES_OWN || READ_ONCE(state.objects_left);
}

static __always_inline int tg_is_empty(struct kern_ipc_perm *queue)
{
	struct msg_queue *whole = (void *)(TG_KERNEL_ADDRESS(queue) -
					   bpf_core_field_offset(struct msg_queue, q_perm));

	return !BPF_CORE_READ(whole, q_qnum);
}

static __always_inline void tg_set_messages_label(struct tg_labelled *label, __u32 sid)
{
	label->messages = sid;
	label->reading = label->writing = 0;
}

/* Whether a subject's message with this SID needs no entry. */
static __always_inline int tg_is_queues_label(struct kern_ipc_perm *queue,
					      struct tg_labelled *label, __u64 subject, __u32 sid)
{
	if (!label)
		return (subject & 0xffff) == TG_SID_MACHINE;
	if (label->messages == sid)
		return 1;
	if (label->messages && !tg_is_empty(queue))
		return 0;
	tg_set_messages_label(label, sid);
	return 1;
}

/* Labels a message that is sent, and returns its SID. One that has waited with an entry keeps its
 * label. 0: it cannot have one. */
static __noinline __u32 tg_label_message(struct kern_ipc_perm *queue, struct tg_labelled *label,
					 __u64 subject, __u64 message)
{
	__u32 left = READ_ONCE(state.objects_left), sid = 0;
	struct tg_labelled *known = 0;

	if (READ_ONCE(state.messages) & TG_MESSAGES_OWN && !left)
		known = tg_find_labelled(message);
	if (known)
		return known->sid;
	if (tg_transition(subject & 0xffff, tg_labelled_sid(label), SECCLASS_MSG, 0, &sid))
		return 0;
	if (left)
		tg_forget_labelled(message);
	if (tg_is_queues_label(queue, label, subject, sid))
		return sid;
	tg_note_messages(TG_MESSAGES_OWN);
	return tg_put_labelled(message, sid, SECCLASS_MSG) ? 0 : sid;
}

static __always_inline enum tg_verdict tg_ask_to_send(__u64 subject, __u32 message, __u32 queue,
						      __u32 key)
{
	enum tg_verdict write, send, enqueue;

	if (subject & TG_UNCONFINED)
		return TG_GRANTED;
	write = tg_ask_ipc(subject, queue, SECCLASS_MSGQ, MSGQ__WRITE, key);
	if (write == TG_DENIED)
		return TG_DENIED;
	send = tg_ask_ipc(subject, message, SECCLASS_MSG, MSG__SEND, key);
	if (send == TG_DENIED)
		return TG_DENIED;
	enqueue = tg_ask_ipc(message, queue, SECCLASS_MSGQ, MSGQ__ENQUEUE, key);
	return enqueue == TG_DENIED ? TG_DENIED : write | send | enqueue;
}

/* Labels and checks a message. Where an unconfined task's gets no label, the queue's messages are
 * unlabelled: the task goes on. */
static __always_inline int tg_check_send(struct kern_ipc_perm *queue, struct tg_labelled *label,
					 __u64 subject, __u64 message)
{
	__u64 epoch = READ_ONCE(state.epoch);
	__u32 sid = tg_label_message(queue, label, subject, message);

	if (!sid && !(subject & TG_UNCONFINED))
		return -EACCES;
	if (!sid && label)
		tg_set_messages_label(label, SECINITSID_UNLABELED);
	enum tg_verdict verdict = tg_ask_to_send(subject, sid, tg_labelled_sid(label), queue->key);

	if (verdict == TG_GRANTED && label && label->messages == sid)
		tg_remember_uses(&label->writing, subject, TG_USE_MESSAGE, epoch);
	return verdict == TG_DENIED ? -EACCES : 0;
}

/* selinux_msg_queue_msgsnd */
SEC("lsm/msg_queue_msgsnd")
int BPF_PROG(msg_queue_msgsnd, struct kern_ipc_perm *queue, struct msg_msg *message, int flags)
{
	__u64 subject = tg_direct_subject();
	int machine = subject == (TG_SID_MACHINE | TG_UNCONFINED);

	if (machine && !READ_ONCE(state.messages) && !READ_ONCE(state.objects_left))
		return 0;
	struct tg_labelled *label = tg_find_labelled(TG_KERNEL_ADDRESS(queue));

	if (label ? !READ_ONCE(state.objects_left) &&
			    tg_was_used(&label->writing, subject, TG_USE_MESSAGE)
		  : machine && !tg_have_messages_entries())
		return 0;
	return tg_check_send(queue, label, subject, TG_KERNEL_ADDRESS(message));
}

/* The label of a message that is received; `own`: its entry. */
static __always_inline __u32 tg_message_sid(const struct tg_labelled *label,
					    const struct tg_labelled *own)
{
	__u32 sid = SECINITSID_UNLABELED;

	if (own)
		return own->sid;
	if (label)
		return label->messages ? label->messages : sid;
	tg_transition(TG_SID_MACHINE, TG_SID_MACHINE, SECCLASS_MSG, 0, &sid);
	return sid;
}

static __always_inline int tg_check_receive(struct kern_ipc_perm *queue, struct tg_labelled *label,
					    __u32 sid, __u64 message)
{
	__u64 epoch = READ_ONCE(state.epoch);
	struct tg_labelled *own = tg_have_messages_entries() ? tg_find_labelled(message) : 0;
	__u32 from = tg_labelled_sid(label), key = queue->key;
	enum tg_verdict read, receive;

	read = tg_ask_ipc(sid, from, SECCLASS_MSGQ, MSGQ__READ, key);
	if (read == TG_DENIED)
		return -EACCES;
	receive = tg_ask_ipc(sid, tg_message_sid(label, own), SECCLASS_MSG, MSG__RECEIVE, key);
	if (receive == TG_DENIED)
		return -EACCES;
	if (label && !own && !(read | receive))
		tg_remember_uses(&label->reading, sid, TG_USE_MESSAGE, epoch);
	return 0;
}

/* selinux_msg_queue_msgrcv: `receiver` may wait while the current task sends. */
SEC("lsm/msg_queue_msgrcv")
int BPF_PROG(msg_queue_msgrcv, struct kern_ipc_perm *queue, struct msg_msg *message,
	     struct task_struct *receiver)
{
	__u64 subject = tg_subject_in(receiver);

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_labelled *label = tg_find_labelled(TG_KERNEL_ADDRESS(queue));

	if (label && !tg_have_messages_entries() &&
	    tg_was_used(&label->reading, subject, TG_USE_MESSAGE))
		return 0;
	return tg_check_receive(queue, label, subject, TG_KERNEL_ADDRESS(message));
}

SEC("lsm/msg_msg_free_security") int BPF_PROG(msg_msg_free_security, struct msg_msg *message)
{
	if (tg_have_messages_entries())
		tg_forget_labelled(TG_KERNEL_ADDRESS(message));
	return 0;
}

#endif
