// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The evaluator in BPF: answers the questions in `jobs`. By this, decide.h is examined by a
 * kernel's verifier, and its answers are compared with others' (`policy verify --against
 * bpf`).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "decide.h"
#include "jobs.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tg_tables);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tg_levels);
} levels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JOBS);
	__type(key, __u32);
	__type(value, struct job);
} jobs SEC(".maps");

static long answer_one(__u32 index, void *unused)
{
	__u32 zero = 0;
	const struct tg_tables *by = bpf_map_lookup_elem(&tables, &zero);
	const struct tg_levels *with = bpf_map_lookup_elem(&levels, &zero);
	struct job *job = bpf_map_lookup_elem(&jobs, &index);

	if (!by || !with || !job)
		return 1;
	switch (job->kind) {
	case JOB_ACCESS:
		job->result = tg_decide(by, with, &job->question, &job->decision);
		break;
	case JOB_EXTENDED:
		tg_decide(by, with, &job->question, &job->decision);
		job->result = tg_extend(by, &job->decision, job->driver, &job->extended);
		break;
	case JOB_LABEL:
		job->result = tg_compute_label(by, with, &job->question, &job->name, &job->label);
		break;
	case JOB_VALIDATE:
		job->result = tg_validate(by, with, &job->question);
		break;
	}
	return 0;
}

struct order {
	__u64 count;	   /* number of jobs to do */
	__u64 nanoseconds; /* time that they took */
};

SEC("syscall") int answer(struct order *order)
{
	__u64 start = bpf_ktime_get_ns();

	bpf_loop(order->count, answer_one, 0, 0);
	order->nanoseconds = bpf_ktime_get_ns() - start;
	return 0;
}

/* The kernel needs no licence for this program, but the LSM programs with decide.h have the same.
 */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
