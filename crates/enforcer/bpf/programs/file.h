/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that are open or are being opened. */
#ifndef TOLLGATE_PROGRAMS_FILE_H
#define TOLLGATE_PROGRAMS_FILE_H

#include "../address.h"
#include "../ask.h"
#include "../bpf_object.h"
#include "../cache.h"
#include "../compiler.h"
#include "../descriptor.h"
#include "../generation.h"
#include "../kernel.h"
#include "../label_inode.h"
#include "../libbpf.h"
#include "../object.h"
#include "../request.h"
#include "../state.h"
#include "../storage.h"
#include "../subject.h"
#include "../survival.h"
#include "classes.h"
#include "enforcer.h"
#include "inode.h"

#define FMODE_EXEC 0x20u      /* in f_flags: the file is opened to be executed */
#define TG_TMPFILE 020000000u /* __O_TMPFILE */

/* A file without a name is made in a directory, whose inode is known only by its address. */
static __noinline int tg_check_tmpfile(struct file *file)
{
	__u64 subject = tg_subject();
	__u64 dir = (__u64)BPF_CORE_READ(file, f_path.dentry, d_parent, d_inode);
	struct tg_inode label = {};

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = tg_label_at(dir, &label) && label.sid ? label.sid : tg_unseen_sid_at(dir),
		.class = SECCLASS_DIR,
		.av = DIR__WRITE | DIR__SEARCH,
		.manager = TG_MANAGER_DIRECTORY,
		.object = TG_OBJECT_PATH,
		.path = TG_ADDRESS(&file->f_path),
	};

	return tg_ask(&request);
}

/* selinux_file_open. It includes all checks of inode_permission, because that hook need not be
 * attached. */
SEC("lsm/file_open") int BPF_PROG(file_open, struct file *file)
{
	__u32 av = FILE__OPEN | tg_file_av(file->f_mode, file->f_flags);
	int result = 0;

	if (file->f_flags & FMODE_EXEC)
		av |= FILE__EXECUTE;
	if (file->f_flags & TG_TMPFILE)
		result = tg_check_tmpfile(file);
	return result ? result : tg_check_path(file->f_inode, &file->f_path, av, 0);
}

/* selinux_file_permission, as if the labels of files and the policy had changed since each file
 * was opened. It is attached while that may be the case. */
SEC("lsm/file_permission") int BPF_PROG(file_permission, struct file *file, int mask)
{
	__u32 av;

	if (mask & MAY_WRITE && file->f_flags & O_APPEND)
		mask |= MAY_APPEND;
	av = tg_mask_av(mask);
	return av ? tg_check_file(file, av) : 0;
}

_Static_assert(FMODE_READ << 1 == FILE__READ && FMODE_WRITE << 1 == FILE__WRITE, "classes.txt");

static __always_inline int tg_check_received(struct file *file)
{
	int result = tg_check_file(file, tg_file_av(file->f_mode, file->f_flags));

	if (!result && tg_takes_ring(file))
		return -EACCES;
	if (!result && file->f_inode->i_flags & S_PRIVATE)
		return tg_pass_bpf(file);
	return result;
}

/* Most files are received by a process with the credentials that opened them. Then another domain's
 * io_uring is none of them; and what the access cache knows is no private inode, as those of BPF
 * objects are. */
SEC("lsm/file_receive") int BPF_PROG(file_receive, struct file *file)
{
	__u32 places = (file->f_mode & (FMODE_READ | FMODE_WRITE)) << 1;

	if (places & FILE__WRITE && file->f_flags & O_APPEND)
		places ^= FILE__WRITE | FILE__APPEND;
	if (places && file->f_cred == bpf_get_current_task_btf()->cred &&
	    tg_is_everybodys(TG_KEY(file->f_inode), places))
		return 0;
	return tg_check_received(file);
}

SEC("lsm/file_lock") int BPF_PROG(file_lock, struct file *file)
{
	return tg_check_file(file, FILE__LOCK);
}

enum tg_fcntl {
	F_GETFL = 3,
	F_SETFL = 4,
	F_GETLK = 5,
	F_SETLK = 6,
	F_SETLKW = 7,
	F_SETOWN = 8,
	F_GETOWN = 9,
	F_SETSIG = 10,
	F_GETSIG = 11,
	F_GETOWNER_UIDS = 17,
	F_OFD_GETLK = 36,
	F_OFD_SETLK = 37,
	F_OFD_SETLKW = 38,
};

SEC("lsm/file_fcntl")
int BPF_PROG(file_fcntl, struct file *file, unsigned int command, unsigned long argument)
{
	/* Those that only change how the task names the file are not checked: F_DUPFD, F_GETFD,
	 * F_SETFD. */
	if (command < F_GETFL)
		return 0;
	switch (command) {
	case F_SETFL:
		if (file->f_flags & O_APPEND && !(argument & O_APPEND))
			return tg_check_file(file, FILE__WRITE);
		return tg_check_descriptor(file);
	case F_SETOWN:
	case F_SETSIG:
	case F_GETFL:
	case F_GETOWN:
	case F_GETSIG:
	case F_GETOWNER_UIDS:
		return tg_check_descriptor(file);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return tg_check_file(file, FILE__LOCK);
	}
	return 0;
}

enum tg_ioctl {
	FIBMAP = 0x0001,
	FIGETBSZ = 0x0002,
	KDSKBENT = 0x4b47,
	KDSKBSENT = 0x4b49,
	FIONREAD = 0x541b,
	FIONBIO = 0x5421,
	FIONCLEX = 0x5450,
	FIOCLEX = 0x5451,
	FIOASYNC = 0x5452,
};
#define FS_IOC_GETFLAGS 0x80086601u
#define FS_IOC_SETFLAGS 0x40086602u
#define FS_IOC_GETVERSION 0x80087601u
#define FS_IOC_SETVERSION 0x40087602u
#define FS_IOC32_GETFLAGS 0x80046601u
#define FS_IOC32_SETFLAGS 0x40046602u
#define FS_IOC32_GETVERSION 0x80047601u
#define FS_IOC32_SETVERSION 0x40047602u
#define EXT4_IOC_SETVERSION 0x40086604u
#define EXT4_IOC32_SETVERSION 0x40046604u
#define EXT4_IOC_SWAP_BOOT 0x6611u
#define EXT4_IOC_SETFSUUID 0x4008662cu
#define XFS_IOC_ATTRMULTI_BY_HANDLE 0x4048587bu
#define XFS_IOC32_ATTRMULTI_BY_HANDLE 0x4024587bu

/* ioctl_has_perm. The caches have `ioctl` only if no rule names commands (tg_narrow). */
static __noinline int tg_ask_command(struct file *file, __u32 command)
{
	__u64 subject = tg_subject(), key = TG_KEY(file->f_inode);
	struct inode *inode = file->f_inode;
	int result;

	if (subject & TG_UNCONFINED || tg_hit_own(key, subject, FILE__IOCTL) ||
	    inode->i_flags & S_PRIVATE)
		return 0;
	struct tg_request request = {
		.source = subject,
		.av = FILE__IOCTL,
		.object = TG_OBJECT_IOCTL,
		.number = command & 0xffff,
		.inode = TG_ADDRESS(inode),
		.path = TG_ADDRESS(&file->f_path),
		.epoch = READ_ONCE(state.epoch),
	};

	tg_name_object(&request, inode);
	result = tg_avc_has_perm(&request);
	tg_remember_answer(&request);
	return tg_verdict_of(result);
}

static __always_inline int tg_check_command(struct file *file, __u32 command)
{
	int result = tg_check_descriptor(file);

	if (result || tg_hit(TG_KEY(file->f_inode), TG_ANY_WAY, READ_ONCE(state.any), FILE__IOCTL))
		return result;
	return tg_ask_command(file, command);
}

/* cred_has_capability */
static __noinline int tg_check_tty_config(void)
{
	__u64 subject = tg_subject();
	struct tg_request request = {
		.source = subject,
		.target = subject,
		.class = SECCLASS_CAPABILITY,
		.av = CAPABILITY__SYS_TTY_CONFIG,
		.manager = TG_MANAGER_CAPABILITY,
		.object = TG_OBJECT_CAPABILITY,
		.number = 26, /* CAP_SYS_TTY_CONFIG */
	};

	return subject & TG_UNCONFINED || !tg_ask(&request) ? 0 : -EACCES;
}

/* A command that gives the inode another generation number, by which its label is kept
 * (tg_label_key). A task needs the permission to remove a label for it. */
static __always_inline int tg_check_renumber(struct file *file, __u32 command)
{
	int result = tg_check_file(file, FILE__SETATTR | FILE__RELABELFROM);

	if (!result && command != FS_IOC_SETVERSION)
		result = tg_check_command(file, command);
	if (!result)
		tg_renumber(file->f_inode);
	return result;
}

/* A command that may change the labels of all files on the file system: xfs writes attributes
 * without calling a hook, and labels are noted by its inode numbers. */
static __always_inline int tg_check_all_labels(struct file *file, __u32 command)
{
	int result = tg_check_command(file, command);

	return result ? result : tg_check_security(SECURITY__SETENFORCE);
}

static __noinline int tg_skips_cloexec(void)
{
	struct tg_generation *generation = tg_find_generation(TG_IN_FORCE);

	return generation && generation->capabilities >> TG_POLICYCAP_IOCTL_SKIP_CLOEXEC & 1;
}

/* selinux_file_ioctl */
static __always_inline int tg_check_ioctl(struct file *file, __u32 command)
{
	switch (command) {
	case FIONREAD:
	case FIBMAP:
	case FIGETBSZ:
	case FS_IOC_GETFLAGS:
	case FS_IOC_GETVERSION:
		return tg_check_file(file, FILE__GETATTR);
	case FS_IOC_SETFLAGS:
		return tg_check_file(file, FILE__SETATTR);
	case FS_IOC_SETVERSION:
	case EXT4_IOC_SETVERSION:
	case EXT4_IOC_SWAP_BOOT:
		return tg_check_renumber(file, command);
	case EXT4_IOC_SETFSUUID:
	case XFS_IOC_ATTRMULTI_BY_HANDLE:
	case XFS_IOC32_ATTRMULTI_BY_HANDLE:
		return tg_check_all_labels(file, command);
	case FIONBIO:
	case FIOASYNC:
		return tg_check_descriptor(file);
	case KDSKBENT:
	case KDSKBSENT:
		return tg_check_tty_config();
	case FIOCLEX:
	case FIONCLEX:
		if (tg_skips_cloexec())
			return 0;
	}
	return tg_check_command(file, command);
}

SEC("lsm/file_ioctl") int BPF_PROG(file_ioctl, struct file *file, unsigned int command)
{
	return tg_check_ioctl(file, command);
}

/* selinux_file_ioctl_compat: for programs of 32 bits, where some commands have other numbers. */
SEC("lsm/file_ioctl_compat")
int BPF_PROG(file_ioctl_compat, struct file *file, unsigned int command)
{
	switch (command) {
	case FS_IOC32_GETFLAGS:
		command = FS_IOC_GETFLAGS;
		break;
	case FS_IOC32_SETFLAGS:
		command = FS_IOC_SETFLAGS;
		break;
	case FS_IOC32_GETVERSION:
		command = FS_IOC_GETVERSION;
		break;
	case FS_IOC32_SETVERSION:
		command = FS_IOC_SETVERSION;
		break;
	case EXT4_IOC32_SETVERSION:
		command = EXT4_IOC_SETVERSION;
		break;
	}
	return tg_check_ioctl(file, command);
}

#endif
