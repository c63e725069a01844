/* SPDX-License-Identifier: MIT */
/* The policy in force, and its decisions: the evaluator of the kernel's programs
 * (crates/abi/decide.h), compiled for this library. */
#ifndef TOLLGATE_SELINUX_POLICY_H
#define TOLLGATE_SELINUX_POLICY_H

#include "built.h"
#include "names.h"
#include "tables.h"

#include <sys/types.h>

struct policy {
	struct built built;
	struct names names;
	struct tg_levels *levels;  /* the policy's own, then those of a question */
	uint32_t own;		   /* how many levels the policy has */
	unsigned char *permissive; /* by type */
	unsigned int sequence;	   /* of the status page */
	unsigned int generation;
	int enforcing;
};

/* A context as numbers of the policy: a range of two levels. */
struct context {
	uint16_t user, role;
	uint32_t type;
	struct tg_level level[2];
};

/* Returns the policy in force, for this thread alone until policy_leave(). NULL with errno: ENOENT
 * where nothing is enforced, ENOTSUP where the policy is of another version. */
struct policy *policy_enter(void);
void policy_leave(void);

/* Reads a context, which must be valid. Returns -1 with EINVAL. */
int context_read(const struct policy *policy, const char *text, struct context *out);
/* The text of a context, allocated; NULL with ENOMEM. */
char *context_write(const struct policy *policy, const struct context *context);

int policy_valid(const struct policy *policy, const struct context *context);
/* The access vectors. Returns -1 with EINVAL if there is no such class. */
int policy_decide(const struct policy *policy, const struct context *source,
		  const struct context *target, uint32_t class, struct tg_decision *out);
/* The context of a new object; name may be NULL. Returns -1 with EINVAL if there is no such class,
 * and with EACCES if the context would not be valid. */
int policy_label(const struct policy *policy, enum tg_ask ask, const struct context *source,
		 const struct context *target, uint32_t class, const char *name,
		 struct context *out);
/* Whether `task` may relabel an object. */
int policy_validate(const struct policy *policy, const struct context *before,
		    const struct context *after, const struct context *task, uint32_t class);

#endif
