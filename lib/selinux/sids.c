/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "alias.h"
#include "sids.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHAINS 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sid *chains[CHAINS];
static uint32_t given;
static unsigned int count;

static uint32_t hash(const char *text)
{
	uint32_t value = 2166136261u;

	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * 16777619u;
	return value;
}

static struct sid *add(const char *text, uint32_t hash)
{
	struct sid *sid = calloc(1, sizeof(*sid));

	if (!sid)
		return NULL;
	sid->public = (struct security_id){.ctx = strdup(text), .refcnt = 1};
	if (!sid->public.ctx) {
		free(sid);
		return NULL;
	}
	sid->number = ++given;
	sid->hash = hash;
	sid->next = chains[hash % CHAINS];
	chains[hash % CHAINS] = sid;
	count++;
	return sid;
}

struct sid *sids_intern(const char *text)
{
	uint32_t wanted = hash(text);
	struct sid *sid;

	pthread_mutex_lock(&lock);
	sid = chains[wanted % CHAINS];
	while (sid && (sid->hash != wanted || strcmp(sid->public.ctx, text)))
		sid = sid->next;
	if (!sid)
		sid = add(text, wanted);
	pthread_mutex_unlock(&lock);
	return sid;
}

void sids_forget(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < CHAINS; i++) {
		while (chains[i]) {
			struct sid *sid = chains[i];

			chains[i] = sid->next;
			free(sid->public.ctx);
			free(sid);
		}
	}
	count = 0;
	pthread_mutex_unlock(&lock);
}

unsigned int sids_count(void)
{
	unsigned int found;

	pthread_mutex_lock(&lock);
	found = count;
	pthread_mutex_unlock(&lock);
	return found;
}

int avc_context_to_sid_raw(const char *text, security_id_t *sid)
{
	struct sid *found = text ? sids_intern(text) : NULL;

	if (!text)
		errno = EINVAL;
	*sid = found ? &found->public : NULL;
	return found ? 0 : -1;
}

int avc_sid_to_context_raw(security_id_t sid, char **text)
{
	*text = strdup(sid->ctx);
	return *text ? 0 : -1;
}

SAME(avc_context_to_sid);
SAME(avc_sid_to_context);

/* SIDs stay until avc_destroy(), whoever counts them. */
int sidget(security_id_t sid)
{
	(void)sid;
	return 1;
}

int sidput(security_id_t sid)
{
	(void)sid;
	return 1;
}
