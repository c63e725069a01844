/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places of the objects on which enforcement depends: the mounts that they are in, one on
 * another, as far as the daemon that holds them has registered them. Unmounting one of these
 * takes programs or the daemon's files away. Covering a directory on the way hides them.
 */
#ifndef TOLLGATE_SURVIVAL_MOUNT_H
#define TOLLGATE_SURVIVAL_MOUNT_H

#include "cache.h"
#include "classes.h"
#include "compiler.h"
#include "decide.h"
#include "enforcer.h"
#include "kernel.h"
#include "libbpf.h"
#include "state.h"
#include "subject.h"
#include "survival.h"

#define TG_DEEP 32u	     /* the deepest nesting of mounts, and of directories */
#define TG_MOUNTS (1u << 14) /* the most mounts that are examined before one is unmounted */

/* A member of the struct mount at an address. */
#define TG_MOUNT(address, member)                                                                  \
	({                                                                                         \
		struct mount *mount_ = (void *)(address);                                          \
		(__u64) BPF_CORE_READ(mount_, member);                                             \
	})

static __always_inline __u64 tg_mount_of(__u64 vfsmount)
{
	return vfsmount - bpf_core_field_offset(struct mount, mnt);
}

/* The mount of an object on which enforcement depends; 0: it is not known. */
static __always_inline __u64 tg_vital_mount(__u32 place)
{
	struct tg_vital *vital = &state.vital[place];
	__u32 device = READ_ONCE(vital->device);
	__u64 mount = READ_ONCE(vital->mount);

	if (!device || BPF_CORE_READ((struct mount *)mount, mnt.mnt_sb, s_dev) != device)
		return 0;
	return mount;
}

/* Whether a mount is another one, or is mounted on it, directly or not. Also returns 1 if this
 * cannot be determined. */
TG_FUNCTION int tg_is_mounted_on(__u64 mount, __u64 other)
{
	for (__u32 i = 0; i < TG_DEEP; i++) {
		__u64 parent;

		if (mount == other)
			return 1;
		parent = TG_MOUNT(mount, mnt_parent);
		if (parent == mount || !parent)
			return 0;
		mount = parent;
	}
	return 1;
}

/* Whether a name is another one, or below it. Also returns 1 if this cannot be determined. */
TG_FUNCTION int tg_is_in(__u64 dentry, __u64 other)
{
	for (__u32 i = 0; i < TG_DEEP; i++) {
		__u64 parent;

		if (dentry == other)
			return 1;
		parent = (__u64)BPF_CORE_READ((struct dentry *)dentry, d_parent);
		if (parent == dentry || !parent)
			return 0;
		dentry = parent;
	}
	return 1;
}

/*
 * What goes away together with a mount: what is mounted on it, and what is mounted at the same
 * places of its peers (propagate_umount). So each mount on the way up from an object on which
 * enforcement depends is examined: whether it would go, and each peer of the mount that it is
 * mounted on.
 *
 * No member except `taken` may begin as a constant: 6.1 examines a step with the initial
 * values first, and removes code that it considers dead then.
 */
struct tg_unmount {
	__u64 gone;  /* the mount that is unmounted; 0: everything has been examined */
	__u64 mount; /* one on the way */
	__u64 first,
		peer; /* that which it is mounted on or its master, and a peer; at first itself */
	int taken;
};

/* The next peer of the mount that one is mounted on, or of that mount's master; 0: there is
 * none. */
static __always_inline int tg_go_on(struct tg_unmount *unmount)
{
	__u64 next = TG_MOUNT(unmount->peer, mnt_share.next);

	if (unmount->first == unmount->mount)
		return 0;
	next -= bpf_core_field_offset(struct mount, mnt_share);
	if (next == unmount->first) {
		if (next != TG_MOUNT(unmount->mount, mnt_parent))
			return 0;
		next = TG_MOUNT(next, mnt_master);
		if (!next)
			return 0;
		unmount->first = next;
	}
	unmount->peer = next;
	return 1;
}

/* The next mount on the way; 0: there is none. */
static __always_inline int tg_go_up(struct tg_unmount *unmount)
{
	__u64 mount = unmount->mount, parent = TG_MOUNT(mount, mnt_parent);

	if (unmount->first != mount) {
		mount = parent;
		parent = TG_MOUNT(mount, mnt_parent);
	}
	if (!parent || parent == mount)
		return 0;
	unmount->mount = mount;
	unmount->first = unmount->peer = parent;
	return 1;
}

static long tg_look_at_mount(__u32 step, struct tg_unmount *unmount)
{
	__u64 gone = unmount->gone, peer = unmount->peer;

	if (tg_is_mounted_on(peer, gone) ||
	    (TG_MOUNT(gone, mnt_parent) == peer &&
	     TG_MOUNT(gone, mnt_mountpoint) == TG_MOUNT(unmount->mount, mnt_mountpoint))) {
		unmount->taken = 1;
		return 1;
	}
	if (tg_go_on(unmount) || tg_go_up(unmount))
		return 0;
	unmount->gone = 0;
	return 1;
}

/* Whether an object on which enforcement depends goes away with a mount. Also returns 1 if this
 * cannot be determined. */
TG_FUNCTION int tg_goes_with(__u32 place, __u64 gone)
{
	if (place >= TG_VITAL)
		return 0;
	__u64 mount = tg_vital_mount(place);
	struct tg_unmount unmount = {gone, mount, mount, mount};

	if (!mount)
		return 0;
	bpf_loop(TG_MOUNTS, tg_look_at_mount, &unmount, 0);
	return unmount.taken || unmount.gone;
}

/* Whether something mounted at a name in a mount, or in a peer of it, hides an object on which
 * enforcement depends. */
TG_FUNCTION int tg_hides(__u32 place, __u64 over, __u64 dentry)
{
	if (place >= TG_VITAL)
		return 0;
	__u64 mount = tg_vital_mount(place), at = state.vital[place].dentry, parent;
	__u32 group = TG_MOUNT(over, mnt_group_id);

	for (__u32 i = 0; i < TG_DEEP && mount; i++) {
		__u32 own = TG_MOUNT(mount, mnt_group_id);

		if ((mount == over || (own && own == group)) && tg_is_in(at, dentry))
			return 1;
		at = TG_MOUNT(mount, mnt_mountpoint);
		parent = TG_MOUNT(mount, mnt_parent);
		mount = parent == mount ? 0 : parent;
	}
	return mount ? 1 : 0;
}

/* Whether the current task sees the pins, in their mount namespace. */
static __always_inline int tg_is_among_pins(void)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 mount = tg_vital_mount(0);

	return mount && TG_MOUNT(mount, mnt_ns) == (__u64)BPF_CORE_READ(current, nsproxy, mnt_ns);
}

static __noinline int tg_takes_vital(__u64 vfsmount)
{
	__u64 gone = tg_mount_of(vfsmount);

	for (__u32 place = 0; place < TG_VITAL; place++)
		if (tg_goes_with(place, gone))
			return 1;
	return 0;
}

static __noinline int tg_hides_vital(__u64 vfsmount, __u64 dentry)
{
	__u64 over = tg_mount_of(vfsmount);

	for (__u32 place = 0; place < TG_VITAL; place++)
		if (tg_hides(place, over, dentry))
			return 1;
	return 0;
}

/* Checks whether the current task may unmount or move a mount, by the address of its vfsmount. */
static __always_inline int tg_check_unmount(__u64 vfsmount)
{
	if (tg_task_subject() & TG_UNCONFINED || !tg_takes_vital(vfsmount))
		return 0;
	return tg_check_security(SECURITY__SETENFORCE);
}

/* Checks whether it may mount something over a name, by the addresses in a struct path. */
static __always_inline int tg_check_cover(__u64 vfsmount, __u64 dentry)
{
	if (tg_task_subject() & TG_UNCONFINED || !tg_hides_vital(vfsmount, dentry))
		return 0;
	return tg_check_security(SECURITY__SETENFORCE);
}

#endif
