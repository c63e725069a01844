/* SPDX-License-Identifier: MIT */
/* What is in force, from the daemon's status page. */
#define _GNU_SOURCE
#include "../request.h"
#include "callbacks.h"
#include "page.h"
#include "policy.h"

#include <errno.h>
#include <pthread.h>
#include <selinux/avc.h>

/* What the program was told last. */
static struct {
	pthread_mutex_t lock;
	unsigned int sequence, enforcing, policyload;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

int follow_status(void)
{
	unsigned int before = __atomic_load_n(&told.sequence, __ATOMIC_ACQUIRE);
	int had_mode, had_policy, first;
	struct tg_status_page page;

	if (page_sequence() == before)
		return 0;
	if (page_read(&page))
		page = (struct tg_status_page){.sequence = page_sequence()};
	pthread_mutex_lock(&told.lock);
	first = !told.sequence;
	had_mode = told.enforcing == page.enforcing;
	had_policy = told.policyload == page.policyload;
	told.enforcing = page.enforcing;
	told.policyload = page.policyload;
	__atomic_store_n(&told.sequence, page.sequence, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&told.lock);
	if (first)
		return 1;
	if (!had_mode) {
		call_log(SELINUX_SETENFORCE, "avc:  op=setenforce lsm=selinux enforcing=%u res=1",
			 page.enforcing);
		call_setenforce(page.enforcing);
	}
	if (!had_policy) {
		call_log(SELINUX_POLICYLOAD, "avc:  op=load_policy lsm=selinux seqno=%u res=1",
			 page.policyload);
		avc_flush();
		call_policyload(page.policyload);
	}
	return 1;
}

int selinux_status_open(int fallback)
{
	struct tg_status_page page;

	(void)fallback; /* there is no other way */
	if (page_read(&page))
		return -1;
	follow_status();
	return 0;
}

void selinux_status_close(void)
{
	__atomic_store_n(&told.sequence, 0, __ATOMIC_RELEASE);
}

int selinux_status_updated(void)
{
	if (!page_sequence()) {
		errno = EINVAL;
		return -1;
	}
	return follow_status();
}

int security_getenforce(void)
{
	struct tg_status_page page;

	return page_read(&page) ? -1 : page.enforcing != 0;
}

/* Managers that go on when enforcement has ended find no class any more: nothing denies that. */
int security_deny_unknown(void)
{
	struct tg_status_page page;

	if (page_read(&page))
		return errno == ENOENT ? 0 : -1;
	return page.deny_unknown != 0;
}

int selinux_status_policyload(void)
{
	struct tg_status_page page;

	return page_read(&page) ? -1 : (int)page.policyload;
}

extern __typeof__(security_getenforce) selinux_status_getenforce
	__attribute__((alias("security_getenforce")));
extern __typeof__(security_deny_unknown) selinux_status_deny_unknown
	__attribute__((alias("security_deny_unknown")));

int is_selinux_enabled(void)
{
	struct tg_status_page page;

	/* A program that cannot see what is in force must not go on as if nothing were. */
	return !page_read(&page) || errno != ENOENT;
}

int is_selinux_mls_enabled(void)
{
	const struct policy *policy = policy_enter();
	int mls;

	if (!policy)
		return 0;
	mls = policy->names.mls;
	policy_leave();
	return mls;
}

int security_reject_unknown(void)
{
	const struct policy *policy = policy_enter();
	int reject;

	if (!policy)
		return -1;
	reject = policy->names.reject_unknown;
	policy_leave();
	return reject;
}

int security_policyvers(void)
{
	const struct policy *policy = policy_enter();
	int version;

	if (!policy)
		return -1;
	version = policy->names.version;
	policy_leave();
	return version;
}

int security_setenforce(int enforcing)
{
	struct line line = request(enforcing ? "mode enforcing" : "mode permissive", NULL);

	return ask(&line, -1, NULL);
}

/* Programs map memory as they ask for (checkreqprot), and nothing else has been possible since
 * Linux 6.4. */
int security_get_checkreqprot(void)
{
	return 0;
}

/* The daemon puts a policy in force. PID 1 would stop the machine if it were told that the policy
 * must be enforced and could not be loaded. */
int selinux_init_load_policy(int *enforce)
{
	*enforce = 0;
	errno = ENOTSUP;
	return -1;
}
