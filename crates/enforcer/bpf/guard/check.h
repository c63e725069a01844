/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks a call of a guarded process in the database in force. */
#ifndef TOLLGATE_GUARD_CHECK_H
#define TOLLGATE_GUARD_CHECK_H

#include "guard_decide.h"
#include "maps.h"
#include "path.h"
#include "process.h"
#include "report.h"
#include "table.h"
#include "../compiler.h"
#include "../kernel.h"
#include "../libbpf.h"

/* Answers a question. Without a database nothing is known, so nothing is denied. */
static __noinline void tg_guard_ask(const struct tg_guard_question *question,
				    struct tg_guard_answer *answer)
{
	void *table = tg_guard_table();

	answer->allowed = 1;
	answer->mode = TG_GUARD_OFF;
	if (!table)
		return;
	__sync_fetch_and_add(&guard_state.asked, 1);
	tg_guard_decide(table, question, answer);
}

/* Counts what no rule allows. Returns whether it is reported. */
static __noinline int tg_guard_count(const struct tg_guard_question *question,
				     const struct tg_guard_answer *answer)
{
	if (answer->allowed || answer->mode == TG_GUARD_OFF)
		return 0;
	if (answer->mode == TG_GUARD_ENFORCE)
		__sync_fetch_and_add(&guard_state.denied, 1);
	if (answer->mode == TG_GUARD_WARN)
		__sync_fetch_and_add(&guard_state.warned, 1);
	if (answer->mode != TG_GUARD_LEARN)
		return 1;
	__sync_fetch_and_add(&guard_state.learnt, 1);
	return !tg_guard_is_met(question);
}

static __always_inline int tg_guard_verdict(const struct tg_guard_answer *answer)
{
	return !answer->allowed && answer->mode == TG_GUARD_ENFORCE ? -EPERM : 0;
}

/* Describes the caller in a question. */
static __always_inline void tg_guard_describe_caller(struct tg_guard_question *question,
						     const struct tg_guard_task *task)
{
	question->history = READ_ONCE(task->history);
	__builtin_memcpy(question->caller, task->program.content, sizeof question->caller);
}

/* Checks a call of the current process. `dentry` and `mount` are addresses of the file that it is
 * about, or 0. */
static __noinline int tg_guard_check_at(__u32 call, __u32 value, __u64 dentry, __u64 mount)
{
	struct tg_guard_task *task = tg_guard_current();
	struct tg_guard_question question = {
		.class = tg_guard_class_of(task),
		.call = call,
		.value = value,
	};
	struct tg_guard_answer answer = {};
	struct tg_guard_event *event;

	if (!task || !question.class)
		return 0;
	tg_guard_describe_caller(&question, task);
	if (tg_guard_has_path(call)) {
		tg_guard_hash_path(&question, dentry, mount);
		tg_guard_hash_stem(&question, dentry, mount);
	}
	tg_guard_ask(&question, &answer);
	if (!tg_guard_count(&question, &answer))
		return tg_guard_verdict(&answer);
	event = tg_guard_begin_event(&question, &task->program, answer.mode);
	if (event) {
		if (dentry)
			tg_guard_tell_path(event, dentry, mount);
		bpf_ringbuf_submit(event, 0);
	}
	return tg_guard_verdict(&answer);
}

static __always_inline int tg_guard_check(__u32 call, __u32 value)
{
	return tg_guard_check_at(call, value, 0, 0) ? -EPERM : 0;
}

/* Whether the current process is guarded, for hooks that much else runs through. */
static __always_inline int tg_guard_applies(void)
{
	return tg_guard_class_of(tg_guard_current()) != 0;
}

#endif
