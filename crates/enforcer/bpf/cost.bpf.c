// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a decision costs: the functions that hooks call, called for one question after another
 * by BPF_PROG_RUN (src/cost.rs). An object file of its own, with maps of its own: it changes
 * nothing of a policy in force, and runs where no hook takes programs.
 */
/* Of some headers not all is used here. */
#pragma clang diagnostic ignored "-Wunused-function"

#include "answer.h"
#include "ask.h"
#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "libbpf.h"
#include "request.h"
#include "state.h"
#include "subject.h"
#include "tables.h"

/* In a section of its own, because struct tg_state is alone in .bss. */
struct tg_cost cost SEC(".data.cost");

/* What opening a file to read it asks for. */
#define TG_HOT_OPEN (FILE__READ | FILE__OPEN)

/* The key of an inode that does not exist, one for each question. They are as far apart as
 * inodes of ext4. */
static __always_inline __u64 tg_inode_key(__u32 index)
{
	return tg_address_key((__u64)index * 1088);
}

/*
 * A program that does `work` for each question, and times all together. With `cost.each` it
 * times each alone as well. `work` returns whether the question was granted.
 */
#define TG_COST_PROGRAM(name, work)                                                                \
	static long name##_one(__u32 index, void *unused)                                          \
	{                                                                                          \
		struct tg_cost_question *asked = &cost.question[index & (TG_COST_QUESTIONS - 1)];  \
		__u64 since = READ_ONCE(cost.each) ? bpf_ktime_get_ns() : 0;                       \
                                                                                                   \
		cost.granted += work(index, asked);                                                \
		if (since)                                                                         \
			asked->took = bpf_ktime_get_ns() - since;                                  \
		return 0;                                                                          \
	}                                                                                          \
                                                                                                   \
	SEC("syscall") int name(void *unused)                                                      \
	{                                                                                          \
		cost.granted = 0;                                                                  \
		__u64 since = bpf_ktime_get_ns();                                                  \
                                                                                                   \
		bpf_loop(cost.count, name##_one, 0, 0);                                            \
		cost.took = bpf_ktime_get_ns() - since;                                            \
		return 0;                                                                          \
	}

/* The loop alone, which all others have as well. */
static __always_inline int tg_do_nothing(__u32 index, const struct tg_cost_question *asked)
{
	return READ_ONCE(asked->av) != 0;
}

/* A hook of files, where the access cache has the answer. */
static __always_inline int tg_hit_file(__u32 index, const struct tg_cost_question *asked)
{
	return tg_hit_own(tg_inode_key(index), tg_task_subject(), TG_HOT_OPEN);
}

/* Any other hook, and one of files where the access cache has no answer. */
static __always_inline int tg_ask_one(__u32 index, const struct tg_cost_question *asked)
{
	struct tg_request request = {
		.source = asked->source,
		.target = asked->target,
		.class = asked->class,
		.av = asked->av,
		.manager = TG_MANAGER_OTHER,
	};

	return !tg_ask(&request);
}

/* The evaluator alone, which user space has as well. */
static __noinline int tg_evaluate(__u32 index, struct tg_cost_question *asked)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);
	struct tg_decision answer = {};

	if (generation)
		tg_decide(&generation->tables, &generation->levels, &asked->question, &answer);
	return answer.allowed != 0;
}

/* Not timed: finds what is granted and may be cached. */
static __noinline int tg_find_granted(__u32 index, struct tg_cost_question *asked)
{
	struct tg_decision answer;

	tg_compute_av(TG_IN_FORCE, asked->source, asked->target, asked->class, &answer);
	asked->av = answer.allowed & ~answer.auditallow;
	return asked->av != 0;
}

/* Not timed: fills the caches that `hit_file` finds filled. */
static __always_inline int tg_fill(__u32 index, const struct tg_cost_question *asked)
{
	__u64 epoch = READ_ONCE(state.epoch), subject = READ_ONCE(cost.subject);

	tg_remember_task(bpf_get_current_task(), subject, epoch);
	tg_remember_access(tg_inode_key(index), tg_way(subject), subject << TG_ACCESS_SID,
			   TG_HOT_OPEN, epoch);
	return 1;
}

/* Not timed: asks, and returns whether the access vector cache had the answer. Statistics must
 * be on. */
static __always_inline int tg_ask_cache(__u32 index, struct tg_cost_question *asked)
{
	__u64 before = READ_ONCE(state.statistic[TG_MANAGER_OTHER].cached);

	tg_ask_one(index, asked);
	asked->took = READ_ONCE(state.statistic[TG_MANAGER_OTHER].cached) - before;
	return asked->took != 0;
}

TG_COST_PROGRAM(nothing, tg_do_nothing)
TG_COST_PROGRAM(hit_file, tg_hit_file)
TG_COST_PROGRAM(ask, tg_ask_one)
TG_COST_PROGRAM(evaluate, tg_evaluate)
TG_COST_PROGRAM(find_granted, tg_find_granted)
TG_COST_PROGRAM(fill, tg_fill)
TG_COST_PROGRAM(ask_cache, tg_ask_cache)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
