/* SPDX-License-Identifier: MIT */
/* The message about a decision, as libselinux writes it. */
#define _GNU_SOURCE
#include "audit.h"

#include "callbacks.h"

#include <selinux/avc.h>
#include <stdio.h>
#include <stdlib.h>

#define SUPPLEMENT 1024 /* bytes that the program may add */

const char *audit_prefix = "avc";

static void write_permissions(FILE *to, security_class_t class, access_vector_t vector)
{
	access_vector_t left = vector;

	if (!vector) {
		fputs(" null", to);
		return;
	}
	fputs(" {", to);
	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name =
			vector >> bit & 1 ? security_av_perm_to_string(class, 1u << bit) : NULL;

		if (name) {
			fprintf(to, " %s", name);
			left &= ~(1u << bit);
		}
	}
	if (left)
		fprintf(to, " 0x%x", left);
	fputs(" }", to);
}

static access_vector_t audited(access_vector_t requested, const struct av_decision *decision,
			       int result, access_vector_t *denied)
{
	*denied = requested & ~decision->allowed;
	if (*denied)
		return *denied & decision->auditdeny;
	if (!requested || result)
		return *denied = requested;
	return requested & decision->auditallow;
}

void avc_audit(security_id_t source, security_id_t target, security_class_t class,
	       access_vector_t requested, struct av_decision *decision, int result, void *data)
{
	access_vector_t denied, told = audited(requested, decision, result, &denied);
	char supplement[SUPPLEMENT] = "", *text = NULL;
	const char *name = told ? security_class_to_string(class) : NULL;
	size_t length;
	FILE *to = told ? open_memstream(&text, &length) : NULL;

	if (!to)
		return;
	call_audit(data, class, supplement, sizeof(supplement));
	fprintf(to, "%s:  %s ", audit_prefix, denied || !requested ? "denied" : "granted");
	write_permissions(to, class, told);
	fprintf(to, " for %s scontext=%s tcontext=%s tclass=", supplement, source->ctx,
		target->ctx);
	if (name)
		fputs(name, to);
	else
		fprintf(to, "%hu", class);
	if (denied)
		fprintf(to, " permissive=%d", !result);
	fputc('\n', to);
	if (!fclose(to))
		call_log(SELINUX_AVC, "%s", text);
	free(text);
}
