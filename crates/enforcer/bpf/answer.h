/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The answer of a policy to a question, computed from the tables of a generation. */
#ifndef TOLLGATE_ANSWER_H
#define TOLLGATE_ANSWER_H

#include "classes.h"
#include "compiler.h"
#include "contexts.h"
#include "decide.h"
#include "enforcer.h"
#include "generation.h"
#include "libbpf.h"
#include "request.h"
#include "state.h"
#include "survival_object.h"
#include "tables.h"

/* map_decision of security/selinux/ss/services.c: turns a decision in the policy's permissions
 * into one in ours. */
TG_FUNCTION int tg_map_decision(const struct tg_generation *generation, __u32 class,
				struct tg_decision *decision)
{
	if (!generation || !decision)
		return 0;
	const struct tg_secclass *map = &generation->classes[class & (TG_SECCLASSES - 1)];
	__u32 allowed = generation->allow_unknown ? map->unknown : 0;
	/* Both at once: the allowed permissions below the audited ones. */
	__u64 granted = decision->allowed | (__u64)decision->auditallow << 32, grants = 0;
	__u32 quiet = 0, unaudited = ~decision->auditdeny;

	/* Without this capability `open` is not checked (open_file_to_av). */
	if (!(generation->capabilities >> TG_POLICYCAP_OPENPERM & 1) && tg_is_file(class))
		allowed |= FILE__OPEN;

	for (__u32 i = 0; i < 32; i++) {
		__u32 bit = map->bit[i], shift = bit & 31, known;

		TG_OPAQUE(bit);
		known = (bit - 32) >> 31; /* without a branch for the verifier to follow */
		grants |= (granted >> shift & known * 0x100000001ull) << i;
		quiet |= (unaudited >> shift & known) << i;
	}
	decision->allowed = allowed | (__u32)grants;
	decision->auditallow = grants >> 32;
	decision->auditdeny = ~quiet;
	return 1;
}

/* Computes an answer from the tables. Returns the number of the generation that answered: the
 * one in force, or another. Returns 0 if that failed, which is counted; then nothing is
 * allowed. */
TG_FUNCTION __u32 tg_compute_av(enum tg_which which, __u32 source, __u32 target, __u32 class,
				struct tg_decision *answer)
{
	if (!answer)
		return 0;
	*answer = (struct tg_decision){.auditdeny = ~0u};
	struct tg_generation *generation = tg_find_generation(which);

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
	/* tg_map_decision grants or denies the permissions of a class that the policy does not
	 * have. */
	if (question.class)
		tg_decide(&generation->tables, &generation->levels, &question, answer);
	else
		answer->permissive = tg_is_permissive(&generation->tables, question.source.type);
	tg_map_decision(generation, class, answer);
	return generation->number;
}

/*
 * avc_has_extended_perms: where rules name commands, replaces the plain ioctl permission by
 * that of the command in `request->number`. Another permission stays as it is. Returns 0 if
 * the generation `by` that gave the answer is no longer in force.
 */
TG_FUNCTION int tg_narrow(enum tg_which which, const struct tg_request *request,
			  struct tg_decision *answer, __u32 by)
{
	if (!request || !answer)
		return 0;
	struct tg_generation *generation = tg_find_generation(which);
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
 * The part of a question that may be allowed. If enforcement depends on the object, only
 * looking at it may be, unless the source may end enforcement anyway. `answer` is used as
 * memory meanwhile, because the stack is small.
 */
static __always_inline __u32 tg_allowable(enum tg_which which, const struct tg_request *request,
					  struct tg_decision *answer)
{
	if (!tg_is_survival(request->target, request->class)) {
		/* The value is as unknown to the verifier as after tg_compute_av, so it reads
		 * what follows once. */
		__u32 any = request->av;

		*answer = (struct tg_decision){any, any, any, any, any, any};
		return ~0u;
	}
	tg_compute_av(which, request->source, SECINITSID_SECURITY, SECCLASS_SECURITY, answer);
	return answer->allowed & SECURITY__SETENFORCE ? ~0u : tg_looks(request->class);
}

/*
 * The answer of one generation to the whole question. FILE__IOCTL in it means that it holds
 * for some commands only. The generation is switched at most once while a program runs,
 * because the switch waits for running programs (bpf_map_update_elem of a map of maps). So the
 * second answer is complete.
 */
static __always_inline __u32 tg_answer(enum tg_which which, struct tg_request *request,
				       struct tg_decision *answer)
{
	__u32 allowable = tg_allowable(which, request, answer);

	for (__u32 try = 0; try < 2; try++) {
		__u32 by = tg_compute_av(which, request->source, request->target, request->class,
					 answer);

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

#endif
