/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Survival: who may stop the enforcer's programs and its daemon. */
#ifndef TOLLGATE_SURVIVAL_H
#define TOLLGATE_SURVIVAL_H

#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "request.h"
#include "state.h"
#include "subject.h"

/* Checks whether a confined subject may end enforcement or change what is enforced, as SELinux
 * checks a write to /sys/fs/selinux/enforce. */
static __always_inline int tg_ask_security(__u32 source, __u32 av)
{
	struct tg_request request = {
		.source = source,
		.target = SECINITSID_SECURITY,
		.class = SECCLASS_SECURITY,
		.av = av,
		.manager = TG_MANAGER_OTHER,
	};

	return tg_ask(&request);
}

/* Checks the same for the current task. */
static __noinline int tg_check_security(__u32 av)
{
	__u64 subject = tg_subject_by_call();

	return subject & TG_UNCONFINED ? 0 : tg_ask_security(subject, av);
}

/* Whether an act of the current task on `task` would affect the daemon. */
static __always_inline int tg_check_daemon(struct task_struct *task)
{
	return tg_is_daemon(task) ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

/* The same for an act of a confined subject on `task`, which the current task only carries out. */
static __always_inline int tg_ask_daemon(struct task_struct *task, __u32 source)
{
	return tg_is_daemon(task) ? tg_ask_security(source, SECURITY__SETENFORCE) : 0;
}

/* Checks whether the current task may have a descriptor of one of our maps or programs, even
 * for reading only: that restricts bpf(2), but not a program that is loaded with the map. */
static __always_inline int tg_check_own(void)
{
	return tg_check_security(SECURITY__LOAD_POLICY | SECURITY__SETENFORCE |
				 SECURITY__SETSECPARAM);
}

enum tg_own { TG_NOT_OWN, TG_OWN, TG_OWN_DENIED };

/* Whether a map is ours, and the current task may have it. A map of this size is a generation.
 * It is recognized by that before the daemon can register its identifier. */
static __always_inline enum tg_own tg_check_own_map(struct bpf_map *map)
{
	struct tg_guarded key = {.kind = TG_GUARDED_MAP, .id = map->id};

	if (!bpf_map_lookup_elem(&guarded, &key) && map->value_size != sizeof(struct tg_generation))
		return TG_NOT_OWN;
	return tg_check_own() ? TG_OWN_DENIED : TG_OWN;
}

/* Whether a program is one of ours. */
static __always_inline int tg_is_own_program(struct bpf_prog *program)
{
	struct tg_guarded key = {.kind = TG_GUARDED_PROGRAM, .id = program->aux->id};

	return bpf_map_lookup_elem(&guarded, &key) ? 1 : 0;
}

/* Whether the file system that keeps our programs alive is the one with this device; if so,
 * checks the permission. */
static __always_inline int tg_check_pins(__u32 device)
{
	__u32 pins = READ_ONCE(state.pins);

	return pins && device == pins ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

#endif
