/* SPDX-License-Identifier: MIT */
/* The policy's decisions about contexts as text. */
#define _GNU_SOURCE
#include "alias.h"
#include "classes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Reads both contexts. Returns the policy, entered; NULL with errno. */
static struct policy *enter_with(const char *source, const char *target, struct context contexts[2])
{
	struct policy *policy = policy_enter();

	if (!policy)
		return NULL;
	if (!context_read(policy, source, &contexts[0]) &&
	    !context_read(policy, target, &contexts[1]))
		return policy;
	policy_leave();
	return NULL;
}

static void decide(const struct policy *policy, const struct context contexts[2],
		   security_class_t class, struct av_decision *out)
{
	struct tg_decision decision = {.auditdeny = ~0u};
	uint32_t number = class_of(policy, class);

	/* The kernel answers for a class that it does not know, too (security_compute_av_user). */
	if (number)
		policy_decide(policy, &contexts[0], &contexts[1], number, &decision);
	else if (!policy->names.deny_unknown)
		decision.allowed = ~0u;
	if (policy->permissive[contexts[0].type])
		decision.permissive = 1;
	*out = (struct av_decision){.allowed = decision.allowed,
				    .decided = ~0u,
				    .auditallow = decision.auditallow,
				    .auditdeny = decision.auditdeny,
				    .seqno = policy->generation,
				    .flags =
					    decision.permissive ? SELINUX_AVD_FLAGS_PERMISSIVE : 0};
	map_decision(policy, class, out);
}

int security_compute_av_flags_raw(const char *source, const char *target, security_class_t class,
				  access_vector_t requested, struct av_decision *out)
{
	struct context contexts[2];
	const struct policy *policy = enter_with(source, target, contexts);

	(void)requested; /* all that is allowed is told */
	if (!policy)
		return -1;
	decide(policy, contexts, class, out);
	policy_leave();
	return 0;
}

int security_compute_av_raw(const char *source, const char *target, security_class_t class,
			    access_vector_t requested, struct av_decision *out)
{
	struct av_decision decision;

	if (security_compute_av_flags_raw(source, target, class, requested, &decision))
		return -1;
	/* Programs that were compiled with an old header have a decision without flags. */
	memcpy(out, &decision, offsetof(struct av_decision, flags));
	return 0;
}

static int label(enum tg_ask ask, const char *source, const char *target, security_class_t class,
		 const char *name, char **out)
{
	struct context contexts[2], fresh;
	const struct policy *policy = enter_with(source, target, contexts);

	*out = NULL;
	if (!policy)
		return -1;
	if (!policy_label(policy, ask, &contexts[0], &contexts[1], class_of(policy, class), name,
			  &fresh))
		*out = context_write(policy, &fresh);
	policy_leave();
	return *out ? 0 : -1;
}

int security_compute_create_name_raw(const char *source, const char *target, security_class_t class,
				     const char *name, char **out)
{
	return label(TG_ASK_TRANSITION, source, target, class, name, out);
}

int security_compute_create_raw(const char *source, const char *target, security_class_t class,
				char **out)
{
	return label(TG_ASK_TRANSITION, source, target, class, NULL, out);
}

int security_compute_member_raw(const char *source, const char *target, security_class_t class,
				char **out)
{
	return label(TG_ASK_MEMBER, source, target, class, NULL, out);
}

int security_compute_relabel_raw(const char *source, const char *target, security_class_t class,
				 char **out)
{
	return label(TG_ASK_CHANGE, source, target, class, NULL, out);
}

int security_canonicalize_context_raw(const char *text, char **canonical)
{
	struct context context;
	const struct policy *policy = policy_enter();

	*canonical = NULL;
	if (!policy)
		return -1;
	if (!context_read(policy, text, &context))
		*canonical = context_write(policy, &context);
	policy_leave();
	return *canonical ? 0 : -1;
}

int security_check_context_raw(const char *text)
{
	struct context context;
	const struct policy *policy = policy_enter();
	int result;

	if (!policy)
		return -1;
	result = context_read(policy, text, &context);
	policy_leave();
	return result;
}

int security_validatetrans_raw(const char *before, const char *after, security_class_t class,
			       const char *text)
{
	struct context contexts[2], task;
	const struct policy *policy = enter_with(before, after, contexts);
	int result = -1;

	if (!policy)
		return -1;
	if (!context_read(policy, text, &task)) {
		result = policy_validate(policy, &contexts[0], &contexts[1], &task,
					 class_of(policy, class))
				 ? 0
				 : -1;
		if (result)
			errno = EPERM;
	}
	policy_leave();
	return result;
}

SAME(security_compute_av);
SAME(security_compute_av_flags);
SAME(security_compute_create);
SAME(security_compute_create_name);
SAME(security_compute_member);
SAME(security_compute_relabel);
SAME(security_canonicalize_context);
SAME(security_check_context);
SAME(security_validatetrans);

int selinux_trans_to_raw_context(const char *text, char **raw)
{
	*raw = text ? strdup(text) : NULL;
	return text && !*raw ? -1 : 0;
}

int selinux_raw_to_trans_context(const char *raw, char **text)
{
	return selinux_trans_to_raw_context(raw, text);
}
