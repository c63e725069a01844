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

/* Finds what a table says of the caller: in the entry of its process, if it is from this table and
 * of this class, which a default depends on. */
static __noinline int tg_guard_know_caller(void *table, struct tg_guard_task *task,
					   const struct tg_guard_question *question,
					   struct tg_guard_answer *answer)
{
	__u64 of = (__u64)((struct bpf_map *)table)->id << 32;
	__u64 class = of | (__u64)question->class << TG_GUARD_CLASS;
	__u64 number = READ_ONCE(task->number) ^ of, known = READ_ONCE(task->known) ^ class;

	answer->allowed = 0;
	if (!(number >> 32 | known >> TG_GUARD_CLASS)) {
		answer->caller = number;
		answer->mode = (known >> TG_GUARD_MODE) & (TG_GUARD_MODES - 1);
		answer->flags = known & ((1u << TG_GUARD_MODE) - 1);
		return 0;
	}
	tg_guard_find_caller(table, question, answer);
	WRITE_ONCE(task->number, of | answer->caller);
	WRITE_ONCE(task->known, class | answer->mode << TG_GUARD_MODE | answer->flags);
	return 0;
}

/* The table in force, after an answer that nothing is known, so that nothing is denied. */
static __always_inline void *tg_guard_table_for(struct tg_guard_answer *answer)
{
	void *table = tg_guard_table();

	*answer = (struct tg_guard_answer){.mode = TG_GUARD_OFF, .allowed = 1};
	if (table)
		__sync_fetch_and_add(&guard_state.asked, 1);
	return table;
}

/* Answers a question about a file, which has a path only if the answer depends on it. `next`: the
 * question had an answer for another file of this directory, whose path is known. */
static __always_inline void tg_guard_ask_of_file(struct tg_guard_question *question,
						 struct tg_guard_task *task, __u64 dentry,
						 __u64 mount, int next,
						 struct tg_guard_answer *answer)
{
	void *table = tg_guard_table_for(answer);

	if (!table)
		return;
	tg_guard_know_caller(table, task, question, answer);
	tg_guard_begin(table, question, answer);
	if (answer->allowed || answer->mode == TG_GUARD_OFF)
		return;
	if (next)
		tg_guard_hash_next(question, dentry);
	else if (tg_guard_has_path(question->call))
		tg_guard_hash_path(question, dentry, mount);
	if (answer->has & TG_GUARD_HAS_STEM)
		tg_guard_hash_stem(question, dentry, mount);
	tg_guard_look_up(table, question, answer);
}

/* Counts what no rule allows. Returns whether it is reported. */
static __noinline int tg_guard_count(const struct tg_guard_question *question, const __u32 *target,
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
	return !tg_guard_is_met(question, target);
}

static __always_inline int tg_guard_verdict(const struct tg_guard_answer *answer)
{
	return !answer->allowed && answer->mode == TG_GUARD_ENFORCE ? -EPERM : 0;
}

/* Describes the caller, which is checked now, in a question. */
static __always_inline void tg_guard_describe_caller(struct tg_guard_question *question,
						     const struct tg_guard_task *task)
{
	__u32 class = READ_ONCE(task->class);

	question->class = class & TG_GUARD_IN_DOMAIN ? tg_guard_class_of(task) : class;
	question->history = READ_ONCE(task->history);
	__builtin_memcpy(question->caller, task->program.content, sizeof question->caller);
}

/* Reports a call, with the path of the file that it is about. */
static __noinline int tg_guard_report(const struct tg_guard_question *question,
				      const struct tg_guard_task *task, __u32 mode, __u64 dentry,
				      __u64 mount)
{
	struct tg_guard_event *event = tg_guard_begin_event(question, 0, &task->program, mode);

	if (!event)
		return 0;
	if (dentry)
		tg_guard_tell_path(event, dentry, mount);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* Counts and reports an answer. Returns -EPERM or 0. */
static __always_inline int tg_guard_audit(const struct tg_guard_question *question,
					  const struct tg_guard_task *task,
					  const struct tg_guard_answer *answer, __u64 dentry,
					  __u64 mount)
{
	if (tg_guard_count(question, 0, answer))
		tg_guard_report(question, task, answer->mode, dentry, mount);
	return tg_guard_verdict(answer);
}

/* Checks a call of the current process, which is guarded by this entry. `dentry` and `mount` are
 * addresses of the file that it is about, or 0. */
static __noinline int tg_guard_check_at(struct tg_guard_task *task, __u32 call, __u32 value,
					__u64 dentry, __u64 mount)
{
	struct tg_guard_question question = {.call = call, .value = value};
	struct tg_guard_answer answer;

	tg_guard_describe_caller(&question, task);
	tg_guard_ask_of_file(&question, task, dentry, mount, 0, &answer);
	return tg_guard_audit(&question, task, &answer, dentry, mount);
}

/* The same for two names in one directory, whose path is hashed once. */
static __noinline int tg_guard_check_two(struct tg_guard_task *task, __u32 call, __u64 old,
					 __u64 new, __u64 mount)
{
	struct tg_guard_question question = {.call = call};
	struct tg_guard_answer answer;

	tg_guard_describe_caller(&question, task);
	tg_guard_ask_of_file(&question, task, old, mount, 0, &answer);
	if (tg_guard_audit(&question, task, &answer, old, mount))
		return -EPERM;
	/* The first answer depended on no path. */
	if (answer.mode == TG_GUARD_OFF || (answer.allowed && !question.path[TG_GUARD_DEPTH - 1]))
		return 0;
	tg_guard_ask_of_file(&question, task, new, mount, 1, &answer);
	return tg_guard_audit(&question, task, &answer, new, mount);
}

static __always_inline int tg_guard_check(__u32 call, __u32 value)
{
	struct tg_guard_task *task = tg_guard_checked();

	return task && tg_guard_check_at(task, call, value, 0, 0) ? -EPERM : 0;
}

#endif
