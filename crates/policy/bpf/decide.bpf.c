// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The evaluator in BPF, for tests and benchmarks: answers the questions that lie in `jobs`, so that
 * the verifier of a running kernel sees all of decide.h, and its answers can be compared with the
 * host's.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "decide.h"
#include "jobs.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct tg_tables);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct tg_levels);
} levels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JOBS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct job);
} jobs SEC(".maps");

static long answer_one(__u32 index, void *unused)
{
	__u32 zero = 0;
	const struct tg_tables *of = bpf_map_lookup_elem(&tables, &zero);
	const struct tg_levels *with = bpf_map_lookup_elem(&levels, &zero);
	struct job *job = bpf_map_lookup_elem(&jobs, &index);

	if (!of || !with || !job)
		return 1;
	switch (job->kind) {
	case JOB_DECIDE:
		job->result = tg_decide(of, with, &job->question, &job->decision);
		job->extended_result = tg_extend(of, &job->decision, job->driver, &job->extended);
		break;
	case JOB_LABEL:
		job->result = tg_compute_label(of, with, &job->question, &job->name, &job->label);
		break;
	default:
		job->result = tg_validate(of, with, &job->question);
		break;
	}
	return 0;
}

struct order {
	__u64 count, nanoseconds;
};

SEC("syscall") int answer(struct order *order)
{
	__u64 start = bpf_ktime_get_ns();

	bpf_loop(order->count, answer_one, 0, 0);
	order->nanoseconds = bpf_ktime_get_ns() - start;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
