/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "callbacks.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static int log_to_stderr(int type, const char *format, ...)
{
	va_list arguments;
	int result;

	(void)type;
	va_start(arguments, format);
	result = vfprintf(stderr, format, arguments);
	va_end(arguments);
	return result;
}

static int add_nothing(void *data, security_class_t class, char *text, size_t length)
{
	(void)data;
	(void)class;
	if (length)
		*text = 0;
	return 0;
}

static int validate(char **context)
{
	return security_check_context(*context);
}

static int ignore(int value)
{
	(void)value;
	return 0;
}

int (*call_log)(int type, const char *format, ...) = log_to_stderr;
int (*call_audit)(void *data, security_class_t class, char *text, size_t length) = add_nothing;
int (*call_validate)(char **context) = validate;
int (*call_setenforce)(int enforcing) = ignore;
int (*call_policyload)(int seqno) = ignore;

void selinux_set_callback(int type, union selinux_callback callback)
{
	switch (type) {
	case SELINUX_CB_LOG:
		call_log = callback.func_log;
		break;
	case SELINUX_CB_AUDIT:
		call_audit = callback.func_audit;
		break;
	case SELINUX_CB_VALIDATE:
		call_validate = callback.func_validate;
		break;
	case SELINUX_CB_SETENFORCE:
		call_setenforce = callback.func_setenforce;
		break;
	case SELINUX_CB_POLICYLOAD:
		call_policyload = callback.func_policyload;
		break;
	}
}

union selinux_callback selinux_get_callback(int type)
{
	union selinux_callback callback = {0};

	switch (type) {
	case SELINUX_CB_LOG:
		callback.func_log = call_log;
		break;
	case SELINUX_CB_AUDIT:
		callback.func_audit = call_audit;
		break;
	case SELINUX_CB_VALIDATE:
		callback.func_validate = call_validate;
		break;
	case SELINUX_CB_SETENFORCE:
		callback.func_setenforce = call_setenforce;
		break;
	case SELINUX_CB_POLICYLOAD:
		callback.func_policyload = call_policyload;
		break;
	}
	return callback;
}
