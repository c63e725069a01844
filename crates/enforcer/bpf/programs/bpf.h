/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BPF maps and programs, including the enforcer's own. */
#ifndef TOLLGATE_PROGRAMS_BPF_H
#define TOLLGATE_PROGRAMS_BPF_H

#include "../address.h"
#include "../ask.h"
#include "../bpf_object.h"
#include "../cache.h"
#include "../kernel.h"
#include "../label_address.h"
#include "../libbpf.h"
#include "../subject.h"
#include "../survival.h"
#include "classes.h"
#include "enforcer.h"

/* Types of programs that reach the memory of other tasks or of the kernel, or replace its
 * functions. Only such a program could detach or update one of our links of tracing, which have
 * neither operation (bpf_tracing_link_lops); those of iterators are updated with iterators. */
static __always_inline int tg_reaches_all(__u32 type)
{
	const __u64 types =
		1ull << BPF_PROG_TYPE_KPROBE | 1ull << BPF_PROG_TYPE_TRACEPOINT |
		1ull << BPF_PROG_TYPE_PERF_EVENT | 1ull << BPF_PROG_TYPE_RAW_TRACEPOINT |
		1ull << BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE | 1ull << BPF_PROG_TYPE_TRACING |
		1ull << BPF_PROG_TYPE_STRUCT_OPS | 1ull << BPF_PROG_TYPE_EXT |
		1ull << BPF_PROG_TYPE_LSM | 1ull << BPF_PROG_TYPE_SYSCALL;

	return types >> (type & 63) & 1;
}

/* Whether the current task may have a descriptor of the link with an identifier: whoever has that
 * of a link to a cgroup can detach it (bpf_cgroup_link_detach). */
static __always_inline int tg_check_link(__u64 attributes)
{
	struct tg_guarded key = {.kind = TG_GUARDED_LINK};

	bpf_probe_read_kernel(&key.id, sizeof key.id,
			      (void *)(attributes + offsetof(union bpf_attr, link_id)));
	return bpf_map_lookup_elem(&guarded, &key) ? tg_check_security(SECURITY__SETENFORCE) : 0;
}

/* selinux_bpf */
SEC("lsm/bpf") int BPF_PROG(bpf, int command, union bpf_attr *attributes)
{
	__u32 av = 0, type = 0;

	if (command == BPF_LINK_GET_FD_BY_ID)
		return tg_check_link(TG_KERNEL_ADDRESS(attributes));

	if (command == BPF_MAP_CREATE)
		av = BPF__MAP_CREATE;
	else if (command == BPF_PROG_LOAD)
		av = BPF__PROG_LOAD;
	if (!av)
		return 0;
	if (av == BPF__PROG_LOAD) {
		bpf_probe_read_kernel(&type, sizeof type,
				      (void *)TG_KERNEL_ADDRESS(attributes) +
					      offsetof(union bpf_attr, prog_type));
		if (tg_reaches_all(type) && tg_check_security(SECURITY__SETENFORCE))
			return -EACCES;
	}
	return tg_ask_plainly(tg_direct_subject(), TG_SELF, SECCLASS_BPF, av, TG_MANAGER_BPF);
}

static __always_inline int tg_check_bpf(__u64 subject, __u64 address, __u32 av)
{
	return tg_ask_plainly(subject, tg_sid_at(address), SECCLASS_BPF, av, TG_MANAGER_BPF);
}

/* selinux_bpf_map: a task gets a descriptor of a map. */
SEC("lsm/bpf_map") int BPF_PROG(bpf_map, struct bpf_map *map, fmode_t mode)
{
	__u64 subject = tg_direct_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	switch (tg_check_own_map(map)) {
	case TG_OWN:
		return 0;
	case TG_OWN_DENIED:
		return -EACCES;
	default:
		break;
	}
	return tg_check_bpf(subject, TG_KERNEL_ADDRESS(map), tg_bpf_av(mode));
}

/* selinux_bpf_prog */
SEC("lsm/bpf_prog") int BPF_PROG(bpf_prog, struct bpf_prog *program)
{
	__u64 subject = tg_direct_subject();

	if (subject & TG_UNCONFINED)
		return 0;
	if (tg_is_own_program(program))
		return tg_check_own();
	return tg_check_bpf(subject, TG_KERNEL_ADDRESS(program->aux), BPF__PROG_RUN);
}

/* Maps, and programs as well, are labelled by one of two hooks, which changed in 6.9. */
SEC("lsm/bpf_map_create") int BPF_PROG(bpf_map_create, struct bpf_map *map)
{
	return tg_make_labelled(TG_KERNEL_ADDRESS(map), SECCLASS_BPF);
}

SEC("lsm/bpf_map_alloc_security") int BPF_PROG(bpf_map_alloc_security, struct bpf_map *map)
{
	return tg_make_labelled(TG_KERNEL_ADDRESS(map), SECCLASS_BPF);
}

SEC("lsm/bpf_map_free") int BPF_PROG(bpf_map_free, struct bpf_map *map)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(map));
	return 0;
}

SEC("lsm/bpf_map_free_security") int BPF_PROG(bpf_map_free_security, struct bpf_map *map)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(map));
	return 0;
}

SEC("lsm/bpf_prog_load") int BPF_PROG(bpf_prog_load, struct bpf_prog *program)
{
	return tg_make_labelled(TG_KERNEL_ADDRESS(program->aux), SECCLASS_BPF);
}

SEC("lsm/bpf_prog_alloc_security") int BPF_PROG(bpf_prog_alloc_security, struct bpf_prog_aux *aux)
{
	return tg_make_labelled(TG_KERNEL_ADDRESS(aux), SECCLASS_BPF);
}

SEC("lsm/bpf_prog_free") int BPF_PROG(bpf_prog_free, struct bpf_prog *program)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(program->aux));
	return 0;
}

SEC("lsm/bpf_prog_free_security") int BPF_PROG(bpf_prog_free_security, struct bpf_prog_aux *aux)
{
	tg_forget_labelled(TG_KERNEL_ADDRESS(aux));
	return 0;
}

#endif
