// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policy testing module of "Analyzing the Overhead of File Protection by Linux Security
 * Modules": a program for every LSM hook that takes as long as user space says and decides nothing.
 *
 * User space writes into `latency` while the programs run. The context is not looked at, so that
 * the programs need no type of any kernel.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
#define LSM_HOOK(name, default_return) HOOK_##name,
#include "lsm_hooks.h"
#undef LSM_HOOK
	HOOKS
};

/* How long a hook takes: so many turns of an empty loop, and so many nanoseconds after them. */
struct tg_delay {
	__u64 units;
	__u64 nanoseconds;
};

/* What user space writes. Delays are in the order of lsm_hooks.h. */
volatile struct {
	/* Only tasks of the control group in `chosen` are delayed. */
	__u64 limited;
	struct tg_delay delays[HOOKS];
} latency SEC(".data.latency");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} chosen SEC(".maps");

/* The most that bpf_loop does (BPF_MAX_LOOPS). */
#define MAX_UNITS (1 << 23)

static int unit(__u64 number, void *unused)
{
	return 0;
}

/* Ends the loop at the deadline. */
static int look_at_the_clock(__u64 number, void *deadline)
{
	return bpf_ktime_get_ns() >= *(__u64 *)deadline;
}

static __always_inline void wait(__u32 hook)
{
	__u64 units = latency.delays[hook].units;
	__u64 nanoseconds = latency.delays[hook].nanoseconds;

	if (!units && !nanoseconds)
		return;
	if (latency.limited && bpf_current_task_under_cgroup(&chosen, 0) != 1)
		return;
	if (units)
		bpf_loop(units, unit, (void *)0, 0);
	if (nanoseconds) {
		__u64 deadline = bpf_ktime_get_ns() + nanoseconds;

		bpf_loop(MAX_UNITS, look_at_the_clock, &deadline, 0);
	}
}

/* Keeps the hook as it is without a module: returns the hook's own default. */
#define LSM_HOOK(name, default_return)                                                             \
	SEC("lsm/" #name) int name(void *ctx)                                                      \
	{                                                                                          \
		wait(HOOK_##name);                                                                 \
		return default_return;                                                             \
	}

#include "lsm_hooks.h"

/* The verifier refuses LSM programs that are not compatible with the GPL (bpf_lsm_verify_prog). */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
