/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members of kernel structures that the object managers read, and no others. Their offsets
 * are found by name in the running kernel's BTF when the programs are loaded (CO-RE).
 */
#ifndef TOLLGATE_KERNEL_H
#define TOLLGATE_KERNEL_H

#include <linux/types.h>

typedef _Bool bool;
typedef unsigned short umode_t;
typedef unsigned int fmode_t;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	union {
		struct {
			__u32 hash, len;
		};
		__u64 hash_len;
	};
	const unsigned char *name;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct file_system_type {
	const char *name;
};

struct kernel_siginfo;
struct key;
struct msg_msg;

typedef struct {
	__u32 val;
} kuid_t;

typedef struct {
	__u32 val;
} kgid_t;

typedef struct {
	int counter;
} atomic_t;

struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};

typedef struct {
	__u8 b[16];
} uuid_t;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	struct file_system_type *s_type;
	struct dentry *s_root;
	struct user_namespace *s_user_ns;
	char s_id[32];
	uuid_t s_uuid;
};

struct inode {
	umode_t i_mode;
	kuid_t i_uid;
	__u32 i_rdev;
	unsigned int i_flags;
	struct super_block *i_sb;
	unsigned long i_ino;
	const unsigned int i_nlink;
	__u32 i_generation;
	struct hlist_head i_dentry;
	void *i_security;
	atomic_t i_writecount;
};

struct lsm_blob_sizes {
	int lbs_inode;
};

struct bpf_map {
	__u32 value_size, id;
};

struct bpf_local_storage_map {
	struct bpf_map map;
};

struct bpf_local_storage_data {
	struct bpf_local_storage_map *smap;
	__u8 data[];
};

struct bpf_local_storage_elem {
	struct hlist_node snode;
	struct bpf_local_storage_data sdata;
};

struct bpf_local_storage {
	struct hlist_head list;
	void *owner;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
	struct hlist_bl_node d_hash;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct proto_ops {
	int family;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct rtnl_link_ops {
	const char *kind;
};

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

/* Before Linux 6.8 the range of local ports was two numbers; since then it is two halves of
 * one. */
struct local_ports {
	int range[2];
};

struct netns_ipv4 {
	struct local_ports ip_local_ports;
	int sysctl_ip_prot_sock;
};

struct ns_common {
	unsigned int inum;
};

struct list_head {
	struct list_head *next, *prev;
};

struct net {
	struct netns_ipv4 ipv4;
	__u64 net_cookie;
	struct user_namespace *user_ns;
	struct ns_common ns;
	struct list_head dev_base_head;
};

struct local_ports___halves {
	__u32 range;
};

struct netns_ipv4___halves {
	struct local_ports___halves ip_local_ports;
};

struct net___halves {
	struct netns_ipv4___halves ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	char name[16];
	possible_net_t nd_net;
	const struct rtnl_link_ops *rtnl_link_ops;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__u32 skc_daddr, skc_rcv_saddr;
	__u16 skc_dport, skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_type, sk_protocol;
	struct bpf_local_storage *sk_bpf_storage;
};

struct unix_address {
	int len;
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct path path;
};

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	__u16 protocol, network_header, transport_header;
	__u16 tc_index, mac_len;
	unsigned char *head, *data;
};

struct request_sock;

struct socket {
	short type;
	struct sock *sk;
	const struct proto_ops *ops;
};

struct msghdr {
	void *msg_name;
	int msg_namelen;
	unsigned int msg_flags;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
	int mnt_flags;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_share;
	struct mount *mnt_master;
	struct mnt_namespace *mnt_ns;
	int mnt_group_id;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct idr {
	struct xarray idr_rt;
};

struct ipc_ids {
	struct idr ipcs_idr;
};

struct ipc_namespace {
	struct ipc_ids ids[3];
};

struct kern_ipc_perm {
	int id, key;
};

struct msg_queue { /* ipc/msg.c */
	struct kern_ipc_perm q_perm;
	unsigned long q_qnum;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct ipc_namespace *ipc_ns;
};

struct fs_struct {
	struct path root;
};

/* 64 bits, whatever they are called */
typedef struct {
	__u32 cap[2];
} kernel_cap_t;

struct cred {
	atomic_t usage; /* has 64 bits since 6.7; the lower half is enough */
	kuid_t uid, suid, euid, fsuid;
	kgid_t gid, sgid, egid;
	kernel_cap_t cap_inheritable, cap_permitted, cap_effective;
	struct user_namespace *user_ns;
};

struct fown_struct {
	struct file *file; /* since 6.12; before, the structure was part of the file */
	kuid_t uid;	   /* of the task that set it */
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	unsigned int f_flags;
	fmode_t f_mode;
	const struct cred *f_cred;
	void *private_data;
};

struct io_uring_cmd {
	struct file *file;
};

struct file___with_owner {
	struct fown_struct f_owner;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec, *open_fds;
};

struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
};

struct iattr {
	unsigned int ia_valid;
};

struct anon_vma;

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct mm_struct *vm_mm;
	struct anon_vma *anon_vma;
	struct file *vm_file;
};

struct pt_regs {
	unsigned long sp, orig_ax;
};

#define TS_COMPAT 0x0002u /* in thread_info.status: a system call of i386 */

struct thread_info {
	__u32 status;
};

#define PF_IO_WORKER 0x10u /* in task_struct.flags */

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags, ptrace;
	int pid, tgid;
	unsigned long atomic_flags;
	__u64 start_boottime;
	struct task_struct *real_parent, *parent, *group_leader;
	const struct cred *real_cred, *cred;
	struct files_struct *files;
	struct fs_struct *fs;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	struct io_uring_task *io_uring;
	char comm[16];
};

struct rlimit {
	unsigned long rlim_cur, rlim_max;
};

struct signal_struct {
	atomic_t live;
	void *tty;
	struct rlimit rlim[16];
};

struct mm_struct {
	atomic_t mm_users;
	unsigned long start_brk, brk, start_stack;
};

struct perf_event_attr {
	__u32 type;
};

struct perf_event {
	struct perf_event_attr attr;
};

struct bpf_prog_aux {
	__u32 id;
};

struct bpf_prog {
	struct bpf_prog_aux *aux;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	void *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

struct linux_binprm {
	struct file *file;
	struct cred *cred;
	const char *filename, *interp;
	int unsafe;
};

#pragma clang attribute pop

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFLNK 0120000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define S_PRIVATE (1u << 9)
#define S_CASEFOLD (1u << 15)

#define MAY_EXEC 0x1
#define MAY_WRITE 0x2
#define MAY_READ 0x4
#define MAY_APPEND 0x8
#define MAY_ACCESS 0x10
#define MAY_NOT_BLOCK 0x80

#define MNT_NOSUID 0x1

#define LSM_UNSAFE_SHARE 1
#define LSM_UNSAFE_PTRACE 2
#define LSM_UNSAFE_NO_NEW_PRIVS 4

#define FMODE_READ 0x1
#define FMODE_WRITE 0x2
#define FMODE_CREATED 0x100000 /* by this open */
#define O_APPEND 02000

#define CLONE_THREAD 0x00010000

#define PROT_WRITE 0x2
#define PROT_EXEC 0x4
#define MAP_SHARED 0x1
#define MAP_TYPE 0xf
#define VM_WRITE 0x2
#define VM_EXEC 0x4
#define VM_SHARED 0x8

#define ATTR_MODE (1u << 0)
#define ATTR_UID (1u << 1)
#define ATTR_GID (1u << 2)
#define ATTR_SIZE (1u << 3)
#define ATTR_ATIME_SET (1u << 7)
#define ATTR_MTIME_SET (1u << 8)
#define ATTR_FORCE (1u << 9)
#define ATTR_KILL_SUID (1u << 11)
#define ATTR_KILL_SGID (1u << 12)
#define ATTR_FILE (1u << 13)
#define ATTR_TIMES_SET (1u << 16)

#define EPERM 1
#define ENOENT 2
#define ECHILD 10
#define EAGAIN 11
#define ENOMEM 12
#define EEXIST 17
#define EACCES 13
#define EBUSY 16
#define EINVAL 22
#define ENOSPC 28
#define ENODATA 61
#define ENOPROTOOPT 92
#define EOPNOTSUPP 95
#define EAFNOSUPPORT 97
#define EALREADY 114

#endif
