/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Survival: who may stop the enforcer's programs and its daemon. */
#ifndef TOLLGATE_GUARD_H
#define TOLLGATE_GUARD_H

#include "ask.h"
#include "subject.h"

/* Whether the current task may end enforcement or change what is enforced, as SELinux asks who
 * writes to /sys/fs/selinux/enforce. */
static __noinline int tg_check_security(__u32 av)
{
	__u64 subject = tg_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = SECINITSID_SECURITY,
		.class = SECCLASS_SECURITY,
		.av = av,
		.manager = TG_MANAGER_OTHER,
	};

	return tg_ask(&request) ? -EACCES : 0;
}

/* What the current task does to `task` would do to the daemon. */
static __always_inline int tg_guard_daemon(struct task_struct *task)
{
	return tg_is_daemon(task) ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

/* Whether the current task may have a descriptor of something that is ours. */
static __always_inline int tg_check_own(int writes)
{
	return tg_check_security(writes ? SECURITY__LOAD_POLICY | SECURITY__SETENFORCE |
						  SECURITY__SETSECPARAM
					: SECURITY__READ_POLICY);
}

enum tg_own { TG_NOT_OWN, TG_OWN, TG_OWN_DENIED };

/* Whether a map is ours, and the current task may have it. A map of this size is a generation, and
 * was one before the daemon could tell its identifier. */
static __always_inline enum tg_own tg_guard_map(struct bpf_map *map, fmode_t mode)
{
	struct tg_guarded key = {.kind = TG_GUARDED_MAP, .id = map->id};
	__u32 *found = bpf_map_lookup_elem(&guarded, &key);
	int writes = mode & FMODE_WRITE ? 1 : 0;

	if (!found && map->value_size != sizeof(struct tg_generation))
		return TG_NOT_OWN;
	if (found && *found & TG_GUARDED_READABLE && !writes)
		return TG_OWN;
	return tg_check_own(writes) ? TG_OWN_DENIED : TG_OWN;
}

/* Whether a program is ours. */
static __always_inline int tg_is_own_program(struct bpf_prog *program)
{
	struct tg_guarded key = {.kind = TG_GUARDED_PROGRAM, .id = program->aux->id};

	return bpf_map_lookup_elem(&guarded, &key) ? 1 : 0;
}

/* The superblock of the file system that keeps our programs alive is ours. */
static __always_inline int tg_guard_filesystem(__u32 device)
{
	__u32 pins = READ_ONCE(state.pins);

	return pins && device == pins ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

#endif
