/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system as a whole: its log, its modules and firmware, its quotas. */
#ifndef TOLLGATE_PROGRAMS_SYSTEM_H
#define TOLLGATE_PROGRAMS_SYSTEM_H

#include "../address.h"
#include "../ask.h"
#include "../cache.h"
#include "../descriptor.h"
#include "../kernel.h"
#include "../libbpf.h"
#include "../object.h"
#include "../request.h"
#include "../subject.h"
#include "classes.h"
#include "enforcer.h"
#include "filesystem.h"

/* `name` is the name of what is requested, if it has one. */
static __noinline int tg_check_system(__u32 target, __u32 av, const char *name)
{
	__u64 subject = tg_subject_by_call();

	if (subject & TG_UNCONFINED)
		return 0;
	struct tg_request request = {
		.source = subject,
		.target = target ? target : subject & 0xffff,
		.class = SECCLASS_SYSTEM,
		.av = av,
		.manager = TG_MANAGER_OTHER,
		.object = name ? TG_OBJECT_NAME : TG_OBJECT_NONE,
		.text = (__u64)name,
	};

	return tg_ask(&request);
}

/* Numbers of syslog(2): include/linux/syslog.h */
enum tg_syslog {
	SYSLOG_READ_ALL = 3,
	SYSLOG_CONSOLE_OFF = 6,
	SYSLOG_CONSOLE_ON,
	SYSLOG_CONSOLE_LEVEL,
	SYSLOG_SIZE_BUFFER = 10,
};

/* selinux_syslog */
SEC("lsm/syslog") int BPF_PROG(syslog, int type)
{
	__u32 av = SYSTEM__SYSLOG_MOD;

	if (type == SYSLOG_READ_ALL || type == SYSLOG_SIZE_BUFFER)
		av = SYSTEM__SYSLOG_READ;
	else if (type >= SYSLOG_CONSOLE_OFF && type <= SYSLOG_CONSOLE_LEVEL)
		av = SYSTEM__SYSLOG_CONSOLE;
	return tg_check_system(SECINITSID_KERNEL, av, 0);
}

/* selinux_kernel_module_request */
SEC("lsm/kernel_module_request") int BPF_PROG(kernel_module_request, char *name)
{
	return tg_check_system(SECINITSID_KERNEL, SYSTEM__MODULE_REQUEST, name);
}

/*
 * What the kernel reads for a task: enum kernel_read_file_id, whose numbers are the same as
 * those of enum kernel_load_data_id (include/linux/kernel_read_file.h). SELinux checks modules
 * since 4.7, and the rest since 6.16. Here they are checked on every kernel, so that a policy
 * has the same meaning.
 */
static __always_inline __u32 tg_loaded_av(int what)
{
	switch (what) {
	case 1:
		return SYSTEM__FIRMWARE_LOAD;
	case 2:
	case 7: /* READING_MODULE_COMPRESSED */
		return SYSTEM__MODULE_LOAD;
	case 3:
		return SYSTEM__KEXEC_IMAGE_LOAD;
	case 4:
		return SYSTEM__KEXEC_INITRAMFS_LOAD;
	case 5:
		return SYSTEM__POLICY_LOAD;
	case 6:
		return SYSTEM__X509_CERTIFICATE_LOAD;
	}
	return 0;
}

/* selinux_kernel_read_file */
SEC("lsm/kernel_read_file")
int BPF_PROG(kernel_read_file, struct file *file, int what, int contents)
{
	__u32 av = tg_loaded_av(what);

	if (!av)
		return 0;
	if (TG_IS_NULL(file) || !contents)
		return tg_check_system(0, av, 0);
	if (tg_subject_by_call() & TG_UNCONFINED)
		return 0;
	if (tg_check_descriptor(file))
		return -EACCES;
	return tg_check_system(tg_object_of(file->f_inode).sid, av, 0);
}

/* selinux_kernel_load_data */
SEC("lsm/kernel_load_data") int BPF_PROG(kernel_load_data, int what, int contents)
{
	__u32 av = tg_loaded_av(what);

	return av ? tg_check_system(0, av, 0) : 0;
}

/* Commands of quotactl(2): include/uapi/linux/quota.h, dqblk_xfs.h */
enum tg_quota {
	Q_SYNC = 0x800001,
	Q_QUOTAON,
	Q_QUOTAOFF,
	Q_GETFMT,
	Q_GETINFO,
	Q_SETINFO,
	Q_GETQUOTA,
	Q_SETQUOTA,
	Q_XQUOTAON = 'X' << 8 | 1,
	Q_XQUOTAOFF,
	Q_XGETQUOTA,
	Q_XSETQLIM,
	Q_XGETQSTAT,
	Q_XGETQSTATV = 'X' << 8 | 8,
	Q_XGETNEXTQUOTA,
};

/* selinux_quotactl */
SEC("lsm/quotactl")
int BPF_PROG(quotactl, int command, int type, int id, struct super_block *sb)
{
	if (TG_IS_NULL(sb))
		return 0;
	switch (command) {
	case Q_SYNC:
	case Q_QUOTAON:
	case Q_QUOTAOFF:
	case Q_SETINFO:
	case Q_SETQUOTA:
	case Q_XQUOTAON:
	case Q_XQUOTAOFF:
	case Q_XSETQLIM:
		return tg_check_superblock(sb, FILESYSTEM__QUOTAMOD);
	case Q_GETFMT:
	case Q_GETINFO:
	case Q_GETQUOTA:
	case Q_XGETQUOTA:
	case Q_XGETQSTAT:
	case Q_XGETQSTATV:
	case Q_XGETNEXTQUOTA:
		return tg_check_superblock(sb, FILESYSTEM__QUOTAGET);
	}
	return 0;
}

/* selinux_quota_on */
SEC("lsm/quota_on") int BPF_PROG(quota_on, struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	return inode ? tg_check_inode(inode, dentry, FILE__QUOTAON, 0) : 0;
}

#endif
