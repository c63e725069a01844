/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a subject has made in a directory before. Whether it may make it, and with which label,
 * takes two questions and a transition, which inode_create and inode_init_security would both
 * look up. The answer to all is one entry of make_cache.
 */
#ifndef TOLLGATE_MADE_BEFORE_H
#define TOLLGATE_MADE_BEFORE_H

#include "address.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "contexts.h"
#include "enforcer.h"
#include "generation.h"
#include "kernel.h"
#include "libbpf.h"
#include "maps.h"
#include "object.h"
#include "state.h"
#include "transition.h"

/* Whether a name may have a rule of its own. */
static __noinline int tg_has_rule(__u32 length, const void *text)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	return !generation || tg_may_be_named(generation, length, text);
}

/* Whether the current task labels what it makes otherwise than the policy says. */
static __always_inline int tg_has_chosen(const struct tg_task *task)
{
	return task && (task->create_sid || task->create_cred);
}

/* The SID of an object of a class with a name, if the current task's subject has made the like
 * before; 0: not known. */
static __always_inline int tg_made_before(const struct tg_task *task, struct inode *dir,
					  __u64 subject, __u32 class, const struct qstr *name)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 made;

	if ((class != SECCLASS_FILE && class != SECCLASS_DIR) ||
	    current->cred != current->real_cred)
		return 0;
	made = tg_find_made(TG_KEY(dir), subject, class == SECCLASS_DIR);
	if (!made || tg_has_chosen(task))
		return 0;
	if (made & TG_MADE_BY_NAME && name && tg_has_rule(name->len, name->name))
		return 0;
	return made & 0xffff;
}

/* Remembers what was granted, unless it is for this name alone. */
static __always_inline void tg_keep_made(struct inode *dir, __u64 subject, __u32 class,
					 struct dentry *dentry, __u32 sid, __u32 epoch)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	__u32 above = tg_object_of(dir).sid, by_name = 0;

	/* Nothing is counted of what the cache answers. */
	if (READ_ONCE(state.statistics) || !generation ||
	    (class != SECCLASS_FILE && class != SECCLASS_DIR) ||
	    tg_has_chosen(bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0)))
		return;
	if (tg_names_decide(generation, tg_context_of(generation, above & 0xffff).type)) {
		by_name = TG_MADE_BY_NAME;
		if (tg_may_be_named(generation, dentry->d_name.len, dentry->d_name.name))
			return;
	}
	tg_remember_made(TG_KEY(dir), subject, class == SECCLASS_DIR, by_name | sid, epoch);
}

#endif
