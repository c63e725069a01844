/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of a denial: an event, and, in permissive mode, a grant. */
#ifndef TOLLGATE_AUDIT_H
#define TOLLGATE_AUDIT_H

enum tg_verdict {
	TG_DENIED = -EACCES,
	TG_GRANTED = 0,
	TG_GRANTED_ONCE = 1, /* permissive, but not for all of this subject: nothing to remember */
};

/* avc_denied: what is denied is granted when permissive as a whole, by domain, or by command. */
static __always_inline enum tg_verdict tg_verdict(const struct tg_request *request,
						  const struct tg_decision *answer)
{
	if (!request->denied)
		return TG_GRANTED;
	/* Who only wants to know has nothing audited, so nothing that is denied may be remembered.
	 */
	if (!READ_ONCE(state.enforcing) || answer->permissive)
		return request->quiet ? TG_GRANTED_ONCE : TG_GRANTED;
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	return task && task->flags & TG_TASK_PERMISSIVE ? TG_GRANTED_ONCE : TG_DENIED;
}

/* avc_audit: decides, and tells what is denied or granted with auditallow; enum tg_verdict. */
TG_FUNCTION int tg_audit(const struct tg_request *request, const struct tg_decision *answer)
{
	if (!request || !answer)
		return TG_DENIED;
	__u32 denied = request->denied;
	enum tg_verdict verdict = tg_verdict(request, answer);
	__u32 audited = denied ? denied & answer->auditdeny : request->av & answer->auditallow;

	if (request->quiet || !audited)
		return verdict;
	struct tg_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);

	if (!event) {
		tg_failed(TG_FAILED_EVENT_LOST);
		return verdict;
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
	event->permissive = denied && verdict != TG_DENIED;
	event->pid = id;
	event->tgid = id >> 32;
	event->object = request->object;
	event->number = request->number;
	event->result = verdict == TG_DENIED ? EACCES : 0;
	bpf_get_current_comm(event->command, sizeof event->command);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&state.events, 1);
	return verdict;
}

#endif
