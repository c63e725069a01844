/* SPDX-License-Identifier: MIT */
/* The access vector cache. Every check reads the status page, so no decision of a policy outlives
 * it, whether or not the program looks for changes. */
#define _GNU_SOURCE
#include "avc.h"

#include "audit.h"
#include "callbacks.h"
#include "page.h"
#include "sids.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4096
#define FOLLOW (-1)

struct key {
	uint32_t source, target, class;
	uint32_t sequence, epoch; /* of the page, and of avc_reset() */
};

/* A cached decision. `turn` is odd while it is written: readers take no lock. */
static struct slot {
	uint32_t turn;
	struct key key;
	struct av_decision decision;
} slots[SLOTS];

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static uint32_t epoch;
static int fixed_mode = FOLLOW; /* AVC_OPT_SETENFORCE */
static int has_main_loop;	/* the program looks for changes itself */
static int is_open;

struct asked {
	struct asked *next;
	int (*call)(uint32_t event, security_id_t source, security_id_t target,
		    security_class_t class, access_vector_t permissions, access_vector_t *retained);
	uint32_t events;
};

static struct asked *asked;

static int is_enforcing(void)
{
	int mode = fixed_mode == FOLLOW ? security_getenforce() : fixed_mode;

	return mode == 1 || (mode < 0 && errno != ENOENT);
}

void avc_follow_by_itself(int itself)
{
	has_main_loop = !itself;
}

static struct slot *slot_of(const struct key *key)
{
	uint32_t hash =
		key->source * 0x9e3779b1u ^ key->target * 0x85ebca6bu ^ key->class * 0xc2b2ae35u;

	return &slots[(hash ^ hash >> 15) % SLOTS];
}

/* Copies words that another thread may be writing. */
static void copy(void *to, const void *from, size_t length)
{
	for (size_t i = 0; i < length / sizeof(uint32_t); i++) {
		uint32_t word = __atomic_load_n((const uint32_t *)from + i, __ATOMIC_RELAXED);

		__atomic_store_n((uint32_t *)to + i, word, __ATOMIC_RELAXED);
	}
}

static int look_up(const struct key *key, struct av_decision *out)
{
	struct slot *slot = slot_of(key);
	uint32_t turn = __atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE);
	struct key found;

	copy(&found, &slot->key, sizeof(found));
	copy(out, &slot->decision, sizeof(*out));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(turn & 1) && !memcmp(&found, key, sizeof(found)) &&
	       __atomic_load_n(&slot->turn, __ATOMIC_RELAXED) == turn;
}

static void remember(const struct key *key, const struct av_decision *decision)
{
	struct slot *slot = slot_of(key);

	pthread_mutex_lock(&writing);
	__atomic_store_n(&slot->turn, slot->turn + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	copy(&slot->key, key, sizeof(*key));
	copy(&slot->decision, decision, sizeof(*decision));
	__atomic_store_n(&slot->turn, slot->turn + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&writing);
}

/* The decision for two SIDs and a class. A change while it is computed is seen in the page's
 * number, so that the decision is not cached as one of the policy after. */
static int decide(security_id_t source, security_id_t target, security_class_t class,
		  struct av_decision *out)
{
	struct key key = {((struct sid *)source)->number, ((struct sid *)target)->number, class,
			  page_sequence(), __atomic_load_n(&epoch, __ATOMIC_ACQUIRE)};

	if (look_up(&key, out))
		return 0;
	if (security_compute_av_flags_raw(source->ctx, target->ctx, class, 0, out))
		return -1;
	if (key.sequence == page_sequence())
		remember(&key, out);
	return 0;
}

int avc_has_perm_noaudit(security_id_t source, security_id_t target, security_class_t class,
			 access_vector_t requested, struct avc_entry_ref *reference,
			 struct av_decision *out)
{
	struct av_decision decision = {0};

	(void)reference;
	if (!source || !target) {
		errno = EINVAL;
		return -1;
	}
	if (!has_main_loop)
		follow_status();
	if (decide(source, target, class, &decision)) {
		int number = errno, granted = !is_enforcing();

		if (out)
			*out = (struct av_decision){0};
		errno = granted ? 0 : number;
		return granted ? 0 : -1;
	}
	if (out)
		*out = decision;
	if (requested && !(requested & ~decision.allowed))
		return 0;
	if (decision.flags & SELINUX_AVD_FLAGS_PERMISSIVE || !is_enforcing())
		return 0;
	errno = EACCES;
	return -1;
}

int avc_has_perm(security_id_t source, security_id_t target, security_class_t class,
		 access_vector_t requested, struct avc_entry_ref *reference, void *data)
{
	struct av_decision decision;
	int result = avc_has_perm_noaudit(source, target, class, requested, reference, &decision);
	int number = errno;

	avc_audit(source, target, class, requested, &decision, result, data);
	errno = number;
	return result;
}

static int create(int (*compute)(const char *, const char *, security_class_t, char **),
		  security_id_t source, security_id_t target, security_class_t class,
		  security_id_t *fresh)
{
	char *text;
	int result;

	*fresh = NULL;
	if (compute(source->ctx, target->ctx, class, &text))
		return -1;
	result = avc_context_to_sid_raw(text, fresh);
	freecon(text);
	return result;
}

int avc_compute_create(security_id_t source, security_id_t target, security_class_t class,
		       security_id_t *fresh)
{
	return create(security_compute_create_raw, source, target, class, fresh);
}

int avc_compute_member(security_id_t source, security_id_t target, security_class_t class,
		       security_id_t *fresh)
{
	return create(security_compute_member_raw, source, target, class, fresh);
}

int avc_get_initial_sid(const char *name, security_id_t *sid)
{
	char *text;
	int result;

	*sid = NULL;
	if (security_get_initial_context_raw(name, &text))
		return -1;
	result = avc_context_to_sid_raw(text, sid);
	freecon(text);
	return result;
}

int avc_add_callback(int (*call)(uint32_t event, security_id_t source, security_id_t target,
				 security_class_t class, access_vector_t permissions,
				 access_vector_t *retained),
		     uint32_t events, security_id_t source, security_id_t target,
		     security_class_t class, access_vector_t permissions)
{
	struct asked *fresh = calloc(1, sizeof(*fresh));

	/* The only event that comes is that everything is forgotten, which is for all of them. */
	(void)source;
	(void)target;
	(void)class;
	(void)permissions;
	if (!fresh)
		return -1;
	fresh->call = call;
	fresh->events = events;
	pthread_mutex_lock(&writing);
	fresh->next = asked;
	__atomic_store_n(&asked, fresh, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&writing);
	return 0;
}

int avc_reset(void)
{
	int result = 0;

	__atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
	for (struct asked *one = __atomic_load_n(&asked, __ATOMIC_ACQUIRE); one; one = one->next) {
		if (one->events & AVC_CALLBACK_RESET &&
		    one->call(AVC_CALLBACK_RESET, NULL, NULL, 0, 0, NULL))
			result = -1;
	}
	return result;
}

void avc_flush(void)
{
	if (is_open)
		avc_reset();
}

int avc_open(struct selinux_opt *options, unsigned int count)
{
	fixed_mode = FOLLOW;
	for (unsigned int i = 0; options && i < count; i++) {
		if (options[i].type == AVC_OPT_SETENFORCE)
			fixed_mode = options[i].value != NULL;
	}
	if (selinux_status_open(0))
		return -1;
	is_open = 1;
	return 0;
}

/* Its SIDs must not be used afterwards. */
void avc_destroy(void)
{
	struct asked *old;

	pthread_mutex_lock(&writing);
	old = asked;
	asked = NULL;
	pthread_mutex_unlock(&writing);
	while (old) {
		struct asked *next = old->next;

		free(old);
		old = next;
	}
	is_open = 0;
	fixed_mode = FOLLOW;
	sids_forget();
}

/* No SID is freed before avc_destroy(). */
void avc_cleanup(void)
{
}
