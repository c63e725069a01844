/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the evaluator's program and its user space share. Rust's copy is in src/verify/bpf.rs. */
#ifndef TOLLGATE_POLICY_JOBS_H
#define TOLLGATE_POLICY_JOBS_H

#include "tables.h"

#define JOBS 1024u /* the most jobs at one time */

enum job_kind { JOB_ACCESS, JOB_EXTENDED, JOB_LABEL, JOB_VALIDATE };

/* A question, and room for its answer. */
struct job {
	__u32 kind;   /* enum job_kind */
	__u32 driver; /* JOB_EXTENDED: the commands' second byte */
	__u32 result; /* what the function of decide.h returned */
	__u32 reserved;
	struct tg_question question;
	struct tg_name name; /* JOB_LABEL */
	__u32 reserved_too;
	struct tg_decision decision; /* JOB_ACCESS, JOB_EXTENDED */
	struct tg_label label;	     /* JOB_LABEL */
	struct tg_extended extended; /* JOB_EXTENDED */
};

#endif
