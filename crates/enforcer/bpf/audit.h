/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of a denial: an event, and, in permissive mode, a grant. */
#ifndef TOLLGATE_AUDIT_H
#define TOLLGATE_AUDIT_H

/* avc_denied: permissive as a whole, by domain, or by command. */
static __always_inline int tg_permissive(const struct tg_answer *answer)
{
	if (!READ_ONCE(state.enforcing) || answer->permissive)
		return 1;
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	return task && task->flags & TG_TASK_PERMISSIVE;
}

/* avc_audit, avc_denied: tells what is denied or granted with auditallow; 0 or -EACCES. */
TG_FUNCTION int tg_audit(const struct tg_request *request, const struct tg_answer *answer)
{
	if (!request || !answer)
		return -EACCES;
	__u32 denied = request->denied;
	int permissive = denied ? tg_permissive(answer) : 0;
	__u32 audited = denied ? denied & answer->auditdeny : request->av & answer->auditallow;

	if (request->quiet || !audited)
		return denied && !permissive ? -EACCES : 0;
	struct tg_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);

	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return denied && !permissive ? -EACCES : 0;
	}
	__u64 id = bpf_get_current_pid_tgid();

	__builtin_memset(event, 0, sizeof *event);
	event->time = bpf_ktime_get_boot_ns();
	event->kind = TG_EVENT_AVC;
	event->source = request->source;
	event->target = request->target;
	event->class = request->class;
	event->requested = request->av;
	event->denied = denied & answer->auditdeny;
	event->permissive = permissive;
	event->pid = id;
	event->tgid = id >> 32;
	event->object = request->object;
	event->number = request->number;
	event->result = denied && !permissive ? EACCES : 0;
	bpf_get_current_comm(event->command, sizeof event->command);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
	return denied && !permissive ? -EACCES : 0;
}

#endif
