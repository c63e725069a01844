// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy testing module of "Analyzing the Overhead of File Protection by Linux Security
 * Modules", in the kernel: every LSM hook takes as long as user space says, and decides nothing.
 *
 * Two files in securityfs, root's alone:
 *
 * tollgate_latency/delays: a line `HOOK UNITS NANOSECONDS` for each hook. What is written replaces
 * all delays, in one write; a hook that has no line has none.
 *
 * tollgate_latency/group: a number is written, the writer's descriptor of a control group's folder
 * (version 2): only tasks in it and below are delayed from then on. -1 is everyone again. What is
 * read is 1 if delays are limited so, else 0.
 *
 * crates/bench/src/confine/latency writes them.
 */
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/lsm_hooks.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

/*
 * Hooks that are left alone: of getprocattr and setprocattr security.c asks the first module that
 * has them, and of the others it takes 0 for an answer, where no module would be -ENOPROTOOPT.
 */
#define LEFT_ALONE_getprocattr 1
#define LEFT_ALONE_setprocattr 1
#define LEFT_ALONE_socket_getpeersec_stream 1
#define LEFT_ALONE_socket_getpeersec_dgram 1

/* Hooks whose default decides something: they are written out below. */
#define WRITTEN_OUT_inode_setxattr 1
#define WRITTEN_OUT_inode_removexattr 1

/* The text, unless the macro of that name is 1. */
#define UNLESS(MACRO, ...) __PASTE(UNLESS_, __is_defined(MACRO))(__VA_ARGS__)
#define UNLESS_0(...) __VA_ARGS__
#define UNLESS_1(...)

enum {
#define LSM_HOOK(RET, DEFAULT, NAME, ...) UNLESS(LEFT_ALONE_##NAME, HOOK_##NAME, )
#include <linux/lsm_hook_defs.h>
#undef LSM_HOOK
	HOOKS
};

static const char *const names[HOOKS] = {
#define LSM_HOOK(RET, DEFAULT, NAME, ...) UNLESS(LEFT_ALONE_##NAME, #NAME, )
#include <linux/lsm_hook_defs.h>
#undef LSM_HOOK
};

/* How long a hook takes: so many units, and so many nanoseconds after them. */
struct delay {
	u64 units;
	u64 nanoseconds;
};

/*
 * The bounds of the BPF programs that do the same, of one call. Many calls in one RCU section, as a
 * path of many components makes, can still be an RCU stall (21 s) together.
 */
#define MOST_UNITS (1ULL << 23)
#define MOST_NANOSECONDS 100000000ULL
/* The longest text that is taken: more than all hooks with the longest delays. */
#define MOST_TEXT 65536

/* Read by hooks without a lock, each word for itself; written under `writing`. */
static struct delay delays[HOOKS];
/* Only tasks in it are delayed; NULL for all. Read under RCU. */
static struct cgroup __rcu *group;
static DEFINE_MUTEX(writing);

static bool chosen(void)
{
	struct cgroup *limit;
	bool in;

	rcu_read_lock();
	limit = rcu_dereference(group);
	in = !limit || task_under_cgroup_hierarchy(current, limit);
	rcu_read_unlock();
	return in;
}

/* Apart from the hooks, so that one without a delay pays for two loads and a branch alone. */
static noinline void take(u64 units, u64 nanoseconds)
{
	if (!chosen())
		return;
	/* A unit is two instructions on every compiler. */
	if (units)
		asm volatile("1: dec %0; jnz 1b" : "+r"(units) : : "cc");
	if (nanoseconds) {
		/* Hooks may be called where the clock's lock is held. */
		u64 deadline = ktime_get_mono_fast_ns() + nanoseconds;

		while (ktime_get_mono_fast_ns() < deadline)
			cpu_relax();
	}
}

static __always_inline void wait(unsigned int hook)
{
	u64 units = READ_ONCE(delays[hook].units);
	u64 nanoseconds = READ_ONCE(delays[hook].nanoseconds);

	if (unlikely(units | nanoseconds))
		take(units, nanoseconds);
}

/* Each returns its hook's own default, as bpf_lsm_NAME does (kernel/bpf/bpf_lsm.c). */
#define DELAYED(RET, DEFAULT, NAME, ...)                                                           \
	static RET delayed_##NAME(__VA_ARGS__)                                                     \
	{                                                                                          \
		wait(HOOK_##NAME);                                                                 \
		return DEFAULT;                                                                    \
	}
#define LSM_HOOK(RET, DEFAULT, NAME, ...)                                                          \
	UNLESS(LEFT_ALONE_##NAME,                                                                  \
	       UNLESS(WRITTEN_OUT_##NAME, DELAYED(RET, DEFAULT, NAME, __VA_ARGS__)))
#include <linux/lsm_hook_defs.h>
#undef LSM_HOOK

/* Who has these asks the capabilities in the kernel's place, as SELinux and Smack do. */
static int delayed_inode_setxattr(struct user_namespace *mnt_userns, struct dentry *dentry,
				  const char *name, const void *value, size_t size, int flags)
{
	wait(HOOK_inode_setxattr);
	return cap_inode_setxattr(dentry, name, value, size, flags);
}

static int delayed_inode_removexattr(struct user_namespace *mnt_userns, struct dentry *dentry,
				     const char *name)
{
	wait(HOOK_inode_removexattr);
	return cap_inode_removexattr(mnt_userns, dentry, name);
}

static struct security_hook_list hooks[] __lsm_ro_after_init = {
#define LSM_HOOK(RET, DEFAULT, NAME, ...)                                                          \
	UNLESS(LEFT_ALONE_##NAME, LSM_HOOK_INIT(NAME, delayed_##NAME), )
#include <linux/lsm_hook_defs.h>
#undef LSM_HOOK
};

/* `HOOK UNITS NANOSECONDS` into `all`. */
static int parse_line(char *line, struct delay *all)
{
	char *name = strsep(&line, " ");
	char *units = strsep(&line, " ");
	int hook = match_string(names, HOOKS, name);
	struct delay delay;

	if (hook < 0)
		return -ENOENT;
	if (!units || !line || kstrtou64(units, 10, &delay.units) ||
	    kstrtou64(line, 10, &delay.nanoseconds))
		return -EINVAL;
	if (delay.units > MOST_UNITS || delay.nanoseconds > MOST_NANOSECONDS)
		return -ERANGE;
	all[hook] = delay;
	return 0;
}

static int parse(char *text, struct delay *all)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		int failed = *line ? parse_line(line, all) : 0;

		if (failed)
			return failed;
	}
	return 0;
}

/* All delays in one write, a second one is refused; none changes when a line is wrong. */
static ssize_t write_delays(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct delay *all;
	char *text;
	int hook, failed;

	if (*at || size > MOST_TEXT)
		return -EFBIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	all = kcalloc(HOOKS, sizeof(*all), GFP_KERNEL);
	failed = all ? parse(text, all) : -ENOMEM;
	kfree(text);
	if (!failed) {
		mutex_lock(&writing);
		for (hook = 0; hook < HOOKS; hook++) {
			WRITE_ONCE(delays[hook].units, all[hook].units);
			WRITE_ONCE(delays[hook].nanoseconds, all[hook].nanoseconds);
		}
		mutex_unlock(&writing);
	}
	kfree(all);
	if (failed)
		return failed;
	*at += size;
	return size;
}

static int show_delays(struct seq_file *to, void *unused)
{
	int hook;

	for (hook = 0; hook < HOOKS; hook++)
		seq_printf(to, "%s %llu %llu\n", names[hook], READ_ONCE(delays[hook].units),
			   READ_ONCE(delays[hook].nanoseconds));
	return 0;
}

static int open_delays(struct inode *inode, struct file *file)
{
	return single_open(file, show_delays, NULL);
}

static const struct file_operations delays_file = {
	.open = open_delays,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = write_delays,
	.release = single_release,
};

static ssize_t write_group(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct cgroup *next = NULL;
	struct cgroup *last;
	int folder;
	int failed = kstrtoint_from_user(from, size, 10, &folder);

	if (failed)
		return failed;
	if (folder >= 0)
		next = cgroup_get_from_fd(folder);
	if (IS_ERR(next))
		return PTR_ERR(next);
	mutex_lock(&writing);
	last = rcu_replace_pointer(group, next, lockdep_is_held(&writing));
	mutex_unlock(&writing);
	if (last) {
		/* A hook may still look at it. */
		synchronize_rcu();
		cgroup_put(last);
	}
	return size;
}

static ssize_t read_group(struct file *file, char __user *to, size_t size, loff_t *at)
{
	const char *text = rcu_access_pointer(group) ? "1\n" : "0\n";

	return simple_read_from_buffer(to, size, at, text, 2);
}

static const struct file_operations group_file = {
	.read = read_group,
	.write = write_group,
	.llseek = generic_file_llseek,
};

static bool active __ro_after_init;

static int __init make_files(void)
{
	struct dentry *folder;

	if (!active)
		return 0;
	folder = securityfs_create_dir("tollgate_latency", NULL);
	if (IS_ERR(folder))
		return PTR_ERR(folder);
	securityfs_create_file("delays", 0600, folder, NULL, &delays_file);
	securityfs_create_file("group", 0600, folder, NULL, &group_file);
	return 0;
}
fs_initcall(make_files);

static int __init start(void)
{
	security_add_hooks(hooks, ARRAY_SIZE(hooks), "tollgate_latency");
	active = true;
	return 0;
}

DEFINE_LSM(tollgate_latency) = {
	.name = "tollgate_latency",
	.init = start,
};
