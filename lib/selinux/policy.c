/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "policy.h"

#include "decide.h"
#include "page.h"
#include "stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A reload removes the file of the generation before; the page then names the next one. */
#define TRIES 100

/* The levels of a question are behind the policy's own. */
enum { SOURCE, TARGET, TASK, PARTIES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct policy in_force;

static void policy_close(struct policy *policy)
{
	names_free(&policy->names);
	built_close(&policy->built);
	free(policy->levels);
	free(policy->permissive);
	*policy = (struct policy){0};
}

/* Each of the policy's own levels: sensitivity, number of words, words. */
static int read_levels(struct policy *policy)
{
	struct stream stream = {.rest = policy->built.levels};

	while (stream.rest.length && !stream.failed) {
		struct tg_level *level = &policy->levels->level[policy->own++];
		uint32_t words;
		struct bytes categories;

		level->sensitivity = stream_number(&stream);
		words = stream_count(&stream, 8);
		categories = stream_bytes(&stream, words * (uint64_t)8);
		if (words > TG_CATEGORIES / 64 || policy->own + 2 * PARTIES > TG_LEVELS)
			stream.failed = 1;
		else if (words && categories.at)
			memcpy(level->categories, categories.at, categories.length);
	}
	if (stream.failed)
		errno = ENOTSUP;
	return stream.failed ? -1 : 0;
}

static int policy_open(struct policy *policy, unsigned int generation)
{
	*policy = (struct policy){.generation = generation};
	if (built_open(&policy->built, generation))
		return -1;
	policy->levels = calloc(1, sizeof(*policy->levels));
	if (policy->levels && !names_read(&policy->names, policy->built.model) &&
	    !read_levels(policy)) {
		policy->permissive = calloc(1, (size_t)policy->names.list[TYPE].count + 1);
		if (policy->permissive)
			return 0;
	}
	policy_close(policy);
	return -1;
}

/* Takes over what the page says beside the policy. */
static void follow(struct policy *policy, const struct tg_status_page *page)
{
	uint32_t types = policy->names.list[TYPE].count;

	memset(policy->permissive, 0, types);
	for (uint32_t i = 0; i < page->permissive && i < TG_STATUS_DOMAINS; i++) {
		if (page->domain[i] < types)
			policy->permissive[page->domain[i]] = 1;
	}
	policy->sequence = page->sequence;
	policy->enforcing = page->enforcing != 0;
}

/* After enforcement has ended and begun again, generations have the same numbers. */
static int is_same(const struct policy *policy, unsigned int generation)
{
	struct built now;
	int same;

	if (!policy->built.memory || policy->generation != generation)
		return 0;
	if (built_open(&now, generation))
		return 1;
	same = now.device == policy->built.device && now.inode == policy->built.inode;
	built_close(&now);
	return same;
}

static int refresh(void)
{
	struct tg_status_page page;
	struct policy next;

	for (int tries = 0; tries < TRIES; tries++) {
		if (page_read(&page))
			return -1;
		if (is_same(&in_force, page.policyload)) {
			follow(&in_force, &page);
			return 0;
		}
		if (!policy_open(&next, page.policyload)) {
			policy_close(&in_force);
			in_force = next;
			follow(&in_force, &page);
			return 0;
		}
		if (errno != ENOENT || page.sequence == page_sequence())
			return -1;
	}
	return -1;
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

/* Another thread may be inside when the process forks. */
__attribute__((constructor)) static void survive_fork(void)
{
	pthread_atfork(before_fork, policy_leave, policy_leave);
}

struct policy *policy_enter(void)
{
	unsigned int sequence = page_sequence();

	pthread_mutex_lock(&lock);
	if (in_force.built.memory && in_force.sequence == sequence)
		return &in_force;
	if (!refresh())
		return &in_force;
	pthread_mutex_unlock(&lock);
	return NULL;
}

void policy_leave(void)
{
	pthread_mutex_unlock(&lock);
}

/* A context as the evaluator reads it, with levels behind the policy's own. */
static struct tg_context place(const struct policy *policy, const struct context *context,
			       int party)
{
	uint32_t low = policy->own + 2 * party;

	policy->levels->level[low] = context->level[0];
	policy->levels->level[low + 1] = context->level[1];
	return (struct tg_context){context->user, context->role, context->type, low, low + 1};
}

int policy_valid(const struct policy *policy, const struct context *context)
{
	struct tg_context placed = place(policy, context, SOURCE);

	return tg_valid(policy->built.tables, policy->levels, &placed, &context->level[0],
			&context->level[1]);
}

int policy_decide(const struct policy *policy, const struct context *source,
		  const struct context *target, uint32_t class, struct tg_decision *out)
{
	struct tg_question question = {.source = place(policy, source, SOURCE),
				       .target = place(policy, target, TARGET),
				       .class = class};

	if (!tg_decide(policy->built.tables, policy->levels, &question, out)) {
		errno = EINVAL;
		return -1;
	}
	out->permissive = policy->permissive[source->type];
	return 0;
}

int policy_label(const struct policy *policy, enum tg_ask ask, const struct context *source,
		 const struct context *target, uint32_t class, const char *name,
		 struct context *out)
{
	struct tg_question question = {.source = place(policy, source, SOURCE),
				       .target = place(policy, target, TARGET),
				       .class = class,
				       .ask = ask};
	struct tg_name file = {0};
	struct tg_label label;

	/* No rule has a longer name. */
	if (name && strlen(name) <= TG_NAME) {
		file.length = strlen(name);
		memcpy(file.text, name, file.length);
	}
	if (!tg_compute_label(policy->built.tables, policy->levels, &question,
			      file.length ? &file : NULL, &label)) {
		errno = class ? EACCES : EINVAL;
		return -1;
	}
	out->user = label.context.user;
	out->role = label.context.role;
	out->type = label.context.type;
	out->level[0] = label.level[0];
	out->level[1] = label.level[1];
	return 0;
}

int policy_validate(const struct policy *policy, const struct context *before,
		    const struct context *after, const struct context *task, uint32_t class)
{
	struct tg_question question = {.source = place(policy, before, SOURCE),
				       .target = place(policy, after, TARGET),
				       .task = place(policy, task, TASK),
				       .class = class};

	return tg_validate(policy->built.tables, policy->levels, &question);
}
