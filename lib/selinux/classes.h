/* SPDX-License-Identifier: MIT */
/* Classes and permissions by the program's numbers: the policy's, or those of the program's mapping
 * (selinux_set_mapping). All are called between policy_enter() and policy_leave(). */
#ifndef TOLLGATE_SELINUX_CLASSES_H
#define TOLLGATE_SELINUX_CLASSES_H

#include "policy.h"

#include <selinux/selinux.h>

/* The policy's number of a class of the program; 0: there is none. */
uint32_t class_of(const struct policy *policy, security_class_t class);
/* The program's number of a class of the policy; 0: its mapping does not have it. */
security_class_t class_from(const struct policy *policy, uint32_t class);
/* Access vectors of a class of the program, in the policy's bits and back. */
access_vector_t vector_of(const struct policy *policy, security_class_t class, access_vector_t own);
access_vector_t vector_from(const struct policy *policy, security_class_t class,
			    access_vector_t theirs);
/* Turns the policy's access vectors into the program's. */
void map_decision(const struct policy *policy, security_class_t class,
		  struct av_decision *decision);

/* A text that is never freed. Equal texts are kept once. NULL: no memory. */
const char *keep_text(const char *text, size_t length);

#endif
