/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions of the daemon to the kernel, by BPF_PROG_RUN. Checks for its clients are decided
 * by the same tables, in the same mode and with the same audit as those of the object
 * managers.
 */
#ifndef TOLLGATE_PROGRAMS_INQUIRY_H
#define TOLLGATE_PROGRAMS_INQUIRY_H

#include "../ask.h"
#include "../compiler.h"
#include "../contexts.h"
#include "../generation.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../request.h"
#include "../socket_label.h"
#include "../state.h"
#include "../subject.h"
#include "../survival_mount.h"
#include "decide.h"
#include "enforcer.h"
#include "tables.h"

/* avc_has_perm for another process. */
SEC("syscall") int check(struct tg_inquiry *inquiry)
{
	struct tg_request request = {
		.source = inquiry->source,
		.target = inquiry->target,
		.class = inquiry->class,
		.av = inquiry->av,
		.manager = TG_MANAGER_OTHER,
		.object = inquiry->process ? TG_OBJECT_TASK : TG_OBJECT_NONE,
		.number = inquiry->process,
	};

	inquiry->result = 0;
	if (!tg_is_unconfined(request.source) && tg_ask(&request))
		inquiry->result = -EACCES;
	return 0;
}

/* security_validate_transition: whether `task` may relabel an object of `class` from `source` to
 * `target`. */
SEC("syscall") int validate(struct tg_inquiry *inquiry)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	inquiry->result = -EPERM;
	if (!generation) {
		tg_failed(TG_FAILED_NO_GENERATION);
		return 0;
	}
	struct tg_question question = {
		.source = tg_context_of(generation, inquiry->source),
		.target = tg_context_of(generation, inquiry->target),
		.task = tg_context_of(generation, inquiry->task),
		.class = generation->classes[inquiry->class & (TG_SECCLASSES - 1)].class,
	};

	/* A class that the policy does not have has no constraints. */
	if (!question.class || tg_validate(&generation->tables, &generation->levels, &question) ||
	    !READ_ONCE(state.enforcing))
		inquiry->result = 0;
	return 0;
}

/* The file of one of the daemon's descriptors. */
static __always_inline struct file *tg_file_of(__u32 descriptor)
{
	struct file **files = BPF_CORE_READ(bpf_get_current_task_btf(), files, fdt, fd), *file = 0;

	if (bpf_probe_read_kernel(&file, sizeof file, files + descriptor))
		return 0;
	return file;
}

/* The label of the socket behind one of the daemon's descriptors: its SID, its class, and the SID
 * of its peer. -ENOENT: it has none. */
SEC("syscall") int socket_label(struct tg_inquiry *inquiry)
{
	struct file *file = tg_file_of(inquiry->descriptor);
	struct tg_socket label = {};
	__u64 sock = 0;

	if (file)
		sock = tg_sock_of_inode((__u64)BPF_CORE_READ(file, f_inode));
	inquiry->result = -ENOENT;
	if (!sock || !tg_socket_at(sock, &label))
		return 0;
	inquiry->source = label.sid;
	inquiry->class = label.class;
	inquiry->target = label.peer;
	inquiry->result = 0;
	return 0;
}

/* Registers the place of the file of one of the daemon's descriptors. */
SEC("syscall") int keep(struct tg_inquiry *inquiry)
{
	struct file *file = tg_file_of(inquiry->descriptor);
	__u32 place = inquiry->place;

	inquiry->result = -EINVAL;
	if (place >= TG_VITAL || !file)
		return 0;
	struct tg_vital *vital = &state.vital[place];
	__u64 mount = tg_mount_of((__u64)BPF_CORE_READ(file, f_path.mnt));

	WRITE_ONCE(vital->device, 0);
	vital->mount = mount;
	vital->dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
	WRITE_ONCE(vital->device, BPF_CORE_READ((struct mount *)mount, mnt.mnt_sb, s_dev));
	inquiry->result = 0;
	return 0;
}

#endif
