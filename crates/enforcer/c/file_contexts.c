/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens a file_contexts by libselinux's selabel, and keeps the first thing that it has to say.
 *
 * libselinux tells what is wrong through a callback that takes a format, and asks through another
 * one whether contexts are valid, which by default is a question to selinuxfs. Both are of the
 * process; what is told goes to the thread that opens.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <selinux/label.h>
#include <selinux/selinux.h>

static _Thread_local char *message;
static _Thread_local size_t message_size;

static int tell(int type, const char *format, ...)
{
	va_list arguments;

	if (type == SELINUX_INFO || !message || *message)
		return 0;
	va_start(arguments, format);
	vsnprintf(message, message_size, format, arguments);
	va_end(arguments);
	return 0;
}

/* The caller has looked at all contexts. */
static int accept_context(char **context)
{
	(void)context;
	return 0;
}

/*
 * Validating means to selabel that every expression is compiled here, none later; and that each
 * line is compared with each other one.
 */
struct selabel_handle *tollgate_file_contexts_open(const char *path, int validate, char *text,
						   size_t size);

struct selabel_handle *tollgate_file_contexts_open(const char *path, int validate, char *text,
						   size_t size)
{
	const struct selinux_opt options[] = {
		{SELABEL_OPT_PATH, path},
		{SELABEL_OPT_VALIDATE, validate ? (char *)1 : NULL},
	};
	struct selabel_handle *handle;

	selinux_set_callback(SELINUX_CB_LOG, (union selinux_callback){.func_log = tell});
	selinux_set_callback(SELINUX_CB_VALIDATE,
			     (union selinux_callback){.func_validate = accept_context});
	memset(text, 0, size);
	message = text;
	message_size = size;
	handle = selabel_open(SELABEL_CTX_FILE, options, sizeof(options) / sizeof(*options));
	message = NULL;
	return handle;
}
