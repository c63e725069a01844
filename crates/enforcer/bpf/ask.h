/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A question and its answer: the access vector cache, then the tables of the generation in force.
 */
#ifndef TOLLGATE_ASK_H
#define TOLLGATE_ASK_H

#include "cache.h"
#include "contexts.h"
#include "survival.h"

/* A question, and what the audit says of it. */
struct tg_request {
	__u32 source, target, class, av; /* SIDs, SECCLASS, permissions of ours */
	__u8 manager;			 /* enum tg_manager */
	__u8 withheld;			 /* answered: only for what enforcement lives by */
	__u16 object;			 /* enum tg_object_kind */
	__u32 number;			 /* capability, ioctl command */
	__u32 quiet;			 /* decide only: no event */
	__u32 dontaudit;		 /* nor when the policy has a dontaudit of these, too */
	__u32 epoch;			 /* before the target's label was read */
	__u32 began;			 /* the epoch when it was asked */
	union {				 /* by `object`: TG_ADDRESS of ... */
		__u64 dentry;		 /* INODE: its name; 0: any that it has */
		__u64 path;		 /* PATH, IOCTL: its struct path */
		__u64 task;		 /* TASK: its struct task_struct */
		__u64 text;		 /* NAME: the string, whose address is a plain number */
		__u64 sock;		 /* SOCKET: its struct sock */
	};
	__u64 inode; /* TG_ADDRESS of it: its number and file system */
	/* Answered: what may be cached of all permissions. */
	__u32 allowed, denied;
};

/* map_decision of security/selinux/ss/services.c: a decision in the policy's permissions becomes
 * one in ours. */
TG_FUNCTION int tg_map(const struct tg_generation *generation, __u32 class,
		       struct tg_decision *decision)
{
	if (!generation || !decision)
		return 0;
	const struct tg_secclass *map = &generation->classes[class & (TG_SECCLASSES - 1)];
	__u32 allowed = generation->allow_unknown ? map->unknown : 0;
	/* Two at once: what is allowed below what is audited. */
	__u64 granted = decision->allowed | (__u64)decision->auditallow << 32, grants = 0;
	__u32 quiet = 0, unaudited = ~decision->auditdeny;

	/* Without this capability nobody asks for `open` (open_file_to_av). */
	if (!(generation->capabilities >> TG_POLICYCAP_OPENPERM & 1) && tg_is_file(class))
		allowed |= FILE__OPEN;

	for (__u32 i = 0; i < 32; i++) {
		__u32 bit = map->bit[i], shift = bit & 31, known;

		TG_OPAQUE(bit);
		known = (bit - 32) >> 31; /* no branch: the verifier would follow both ways */
		grants |= (granted >> shift & known * 0x100000001ull) << i;
		quiet |= (unaudited >> shift & known) << i;
	}
	decision->allowed = allowed | (__u32)grants;
	decision->auditallow = grants >> 32;
	decision->auditdeny = ~quiet;
	return 1;
}

/* Asks the tables; the number of the generation that has answered: the one in force, or another.
 * 0: they could not be asked, which is counted; nothing is allowed then. */
TG_FUNCTION __u32 tg_compute(enum tg_which which, __u32 source, __u32 target, __u32 class,
			     struct tg_decision *answer)
{
	if (!answer)
		return 0;
	*answer = (struct tg_decision){.auditdeny = ~0u};
	struct tg_generation *generation = tg_generation(which);

	if (!generation) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return 0;
	}
	struct tg_question question = {
		.source = tg_context_of(generation, source),
		.target = tg_context_of(generation, target),
		.class = generation->classes[class & (TG_SECCLASSES - 1)].class,
	};

	if (!question.source.type || !question.target.type) {
		tg_failed(TG_FAILED_NO_CONTEXT);
		return 0;
	}
	/* A class that the policy does not know: tg_map grants its permissions, or none. */
	if (question.class)
		tg_decide(&generation->tables, &generation->levels, &question, answer);
	else
		answer->permissive = tg_is_permissive(&generation->tables, question.source.type);
	tg_map(generation, class, answer);
	return generation->number;
}

#include "audit.h"

/*
 * avc_has_extended_perms: the plain ioctl permission becomes that of the command in
 * `request->number`, when rules name commands. Another permission stays as it is. 0: the generation
 * `by` that has given the answer is no longer in force.
 */
TG_FUNCTION int tg_narrow(enum tg_which which, const struct tg_request *request,
			  struct tg_decision *answer, __u32 by)
{
	if (!request || !answer)
		return 0;
	struct tg_generation *generation = tg_generation(which);
	struct tg_extended commands;
	__u32 number = request->number, word = number >> 6 & 3, bit = number & 63;

	if (!generation || generation->number != by)
		return 0;
	if (!tg_extend(&generation->tables, answer, number >> 8 & 0xff, &commands))
		return 1;
	if (!(commands.allow[word] >> bit & 1))
		answer->allowed &= ~FILE__IOCTL;
	if (!(commands.auditallow[word] >> bit & 1))
		answer->auditallow &= ~FILE__IOCTL;
	if (commands.dontaudit[word] >> bit & 1)
		answer->auditdeny &= ~FILE__IOCTL;
	return 1;
}

/*
 * What may be allowed of a question: of one about what enforcement lives by, looking at it, unless
 * the source may end enforcement anyway. `answer` is for use meanwhile, for the stack is small.
 */
static __always_inline __u32 tg_allowable(enum tg_which which, const struct tg_request *request,
					  struct tg_decision *answer)
{
	if (!tg_is_survival(request->target, request->class)) {
		/* As unknown as after tg_compute: the verifier reads what follows once. */
		__u32 any = request->av;

		*answer = (struct tg_decision){any, any, any, any, any, any};
		return ~0u;
	}
	tg_compute(which, request->source, SECINITSID_SECURITY, SECCLASS_SECURITY, answer);
	return answer->allowed & SECURITY__SETENFORCE ? ~0u : tg_looks(request->class);
}

/*
 * The answer of one generation to all of a question; FILE__IOCTL: it holds for some commands only.
 * A generation is switched to at most once while a program runs, for who switches waits for the
 * programs that run (bpf_map_update_elem of a map of maps): the second answer is whole.
 */
static __always_inline __u32 tg_answer(enum tg_which which, struct tg_request *request,
				       struct tg_decision *answer)
{
	__u32 allowable = tg_allowable(which, request, answer);

	for (__u32 try = 0; try < 2; try++) {
		__u32 by =
			tg_compute(which, request->source, request->target, request->class, answer);

		request->withheld = request->av & ~allowable && !(request->av & ~answer->allowed);
		answer->allowed &= allowable;
		if (!(answer->extended | answer->extended_self))
			return 0;
		if (request->object != TG_OBJECT_IOCTL || tg_narrow(which, request, answer, by))
			return FILE__IOCTL;
	}
	answer->allowed &= ~FILE__IOCTL;
	return FILE__IOCTL;
}

#include "shadow.h"

static __always_inline void tg_count(__u32 manager, int cached)
{
	if (!state.statistics)
		return;
	struct tg_statistics *statistic = &state.statistic[manager & (TG_MANAGERS - 1)];

	__sync_fetch_and_add(&statistic->asked, 1);
	__sync_fetch_and_add(cached ? &statistic->cached : &statistic->tables, 1);
}

/* Where the answer to a question is kept, and what tells it from others. Looked for again after the
 * question was answered, for the stack is small. */
static __always_inline __u64 *tg_place_of(const struct tg_request *request, __u64 *tag)
{
	__u64 key = TG_AVC_KEY(request->source, request->target, request->class);

	*tag = tg_avc_tag(key, request->began);
	return tg_avc_entry(key);
}

/* Keeps what was answered; what was denied and granted before stays granted (avc_update_node): it
 * is told once. */
static __always_inline void tg_keep_answer(struct tg_request *request, int granted)
{
	__u64 tag, *entry = tg_place_of(request, &tag);
	__u64 found = READ_ONCE(*entry) ^ tag;

	if (granted && !(found >> 32))
		request->allowed |= (__u32)found;
	__sync_lock_test_and_set(entry, tag | request->allowed);
	if ((__u32)READ_ONCE(state.epoch) != request->began)
		WRITE_ONCE(*entry, 0);
}

/*
 * avc_has_perm: whether the source has the permissions; what is denied, or granted with auditallow,
 * is audited. 0 or -EACCES; `request->allowed` is what may be cached.
 */
TG_FUNCTION int tg_ask(struct tg_request *request)
{
	if (!request)
		return -EACCES;
	request->began = READ_ONCE(state.epoch);
	struct tg_decision answer = {};
	__u64 tag, *entry = tg_place_of(request, &tag), found = READ_ONCE(*entry) ^ tag;

	if (!(found >> 32) && !(request->av & ~(__u32)found) && !READ_ONCE(state.switching)) {
		tg_count(request->manager, 1);
		request->allowed = found;
		return 0;
	}
	/* What it asks is whether anybody asks: nothing is counted, told, or granted by a mode. */
	if (request->source == TG_SID_CANARY) {
		request->allowed = 0;
		return -EACCES;
	}
	tg_count(request->manager, 0);
	tg_ask_shadow(request, &answer);
	__u32 cacheable = ~tg_answer(TG_IN_FORCE, request, &answer); /* some commands only */

	cacheable &= tg_compare_shadow(request, answer.allowed);
	request->allowed = answer.allowed & ~answer.auditallow;
	request->denied = request->av & ~answer.allowed;
	if (request->denied && request->dontaudit & ~answer.auditdeny)
		request->quiet = 1;
	int verdict = tg_audit(request, &answer),
	    granted = verdict == TG_GRANTED && request->denied;

	if (granted)
		request->allowed |= request->denied & ~answer.auditallow;
	request->allowed &= cacheable;
	tg_keep_answer(request, granted);
	return verdict == TG_DENIED ? -EACCES : 0;
}

#endif
