/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the test program and its user space share. */
#ifndef TOLLGATE_POLICY_DECIDE_H
#define TOLLGATE_POLICY_DECIDE_H

#include "tables.h"

#define JOBS 1024u

enum job_kind { JOB_DECIDE, JOB_LABEL, JOB_VALIDATE };

/* A question, and room for its answer. */
struct job {
	__u32 kind;   /* enum job_kind */
	__u32 driver; /* JOB_DECIDE: whose extended permissions are asked for too */
	__u32 result, extended_result; /* what tg_* returned */
	struct tg_question question;
	struct tg_name name;
	struct tg_decision decision;
	struct tg_label label;
	struct tg_extended extended;
};

#endif
