/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a denial leads to: an event, and a grant in permissive mode. */
#ifndef TOLLGATE_AUDIT_H
#define TOLLGATE_AUDIT_H

#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "event.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"
#include "state.h"
#include "tables.h"

/* avc_denied: a denial becomes a grant if the machine, the domain or the command is permissive. */
static __always_inline enum tg_verdict tg_verdict_on(const struct tg_request *request,
						     const struct tg_decision *answer)
{
	if (!request->denied)
		return TG_GRANTED;
	/* For a quiet question nothing is audited, so no denial may be cached as granted. */
	if (!READ_ONCE(state.enforcing) || answer->permissive)
		return request->quiet ? TG_GRANTED_ONCE : TG_GRANTED;
	struct tg_task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	return task && task->flags & TG_TASK_PERMISSIVE ? TG_GRANTED_ONCE : TG_DENIED;
}

/* avc_audit: decides, and reports what is denied or granted with auditallow; enum tg_verdict. */
TG_FUNCTION int tg_audit(const struct tg_request *request, const struct tg_decision *answer)
{
	if (!request || !answer)
		return TG_DENIED;
	__u32 denied = request->denied;
	enum tg_verdict verdict = tg_verdict_on(request, answer);
	__u32 audited = denied ? denied & answer->auditdeny : request->av & answer->auditallow;

	if (request->quiet)
		return verdict;
	if (audited)
		tg_tell_decision(request, audited, verdict);
	if (denied && state.statistics)
		__sync_fetch_and_add(&state.statistic[request->manager & (TG_MANAGERS - 1)].denied,
				     1);
	return verdict;
}

#endif
