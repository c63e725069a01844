/* SPDX-License-Identifier: MIT */
/* Checks by names, and of the program that is executed next. */
#define _GNU_SOURCE
#include "callbacks.h"

#include <errno.h>
#include <selinux/avc.h>
#include <selinux/context.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a class or a permission that the policy does not have means. */
static int unknown(const char *what, const char *name)
{
	int number = errno;

	call_log(SELINUX_ERROR, "Unknown %s %s", what, name);
	errno = number;
	return security_deny_unknown() == 0 ? 0 : -1;
}

int selinux_check_access(const char *source, const char *target, const char *class,
			 const char *permission, void *data)
{
	security_id_t sids[2];
	security_class_t number;
	access_vector_t vector;

	if (is_selinux_enabled() != 1)
		return 0;
	if (avc_context_to_sid(source, &sids[0]) || avc_context_to_sid(target, &sids[1]))
		return -1;
	follow_status();
	number = string_to_security_class(class);
	if (!number)
		return unknown("class", class);
	vector = string_to_av_perm(number, permission);
	if (!vector)
		return unknown("permission", permission);
	return avc_has_perm(sids[0], sids[1], number, vector, NULL, data);
}

/* Whether the program that called this one has a permission of class passwd. */
static int check_passwd(access_vector_t vector)
{
	security_class_t class = string_to_security_class("passwd");
	const char *name = class ? security_av_perm_to_string(class, vector) : NULL;
	char *context;
	int result;

	if (is_selinux_enabled() != 1)
		return 0;
	if (getprevcon_raw(&context))
		return -1;
	result = selinux_check_access(context, context, "passwd", name ? name : "passwd", NULL);
	freecon(context);
	return result;
}

int selinux_check_passwd_access(access_vector_t vector)
{
	return check_passwd(vector);
}

int checkPasswdAccess(access_vector_t vector)
{
	return check_passwd(vector);
}

/* The context of a program that is executed; one of the fallback type if it would be the caller's
 * own. */
static char *context_after(const char *path, const char *fallback)
{
	char *own = NULL, *file = NULL, *fresh = NULL;
	security_class_t process = string_to_security_class("process");
	context_t context;

	if (getcon(&own) || getfilecon(path, &file) < 0 ||
	    security_compute_create(own, file, process, &fresh))
		goto out;
	if (fallback && !strcmp(own, fresh)) {
		context = context_new(own);
		freecon(fresh);
		fresh = NULL;
		if (context && !context_type_set(context, fallback) && context_str(context))
			fresh = strdup(context_str(context));
		context_free(context);
	}
out:
	freecon(own);
	freecon(file);
	return fresh;
}

int setexecfilecon(const char *path, const char *fallback)
{
	char *context;
	int result;

	if (is_selinux_enabled() != 1)
		return 0;
	context = context_after(path, fallback);
	result = context ? setexeccon(context) : -1;
	freecon(context);
	return result && security_getenforce() == 0 ? 0 : result;
}

int rpm_execcon(unsigned int verified, const char *path, char *const arguments[],
		char *const environment[])
{
	(void)verified;
	if (setexecfilecon(path, "rpm_script_t"))
		return -1;
	return execve(path, arguments, environment);
}
