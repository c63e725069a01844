/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the enforcer's BPF programs and its daemon share: the generation that is in force, the
 * values of maps, the events. Numbers are the kernel's byte order.
 *
 * A SID is the machine's name for a security context, as in SELinux. It outlives generations: each
 * has its own array from SID to context, in its own numbers for users, roles and types.
 */
#ifndef TOLLGATE_ENFORCER_H
#define TOLLGATE_ENFORCER_H

#include "tables.h"

/* SIDs: the kernel's initial ones keep their numbers
 * (security/selinux/include/initial_sid_to_string.h). */
#define TG_SIDS (1u << 15)
enum tg_initial_sid {
	SECINITSID_KERNEL = 1,
	SECINITSID_SECURITY,
	SECINITSID_UNLABELED,
	SECINITSID_FS,
	SECINITSID_FILE,
	SECINITSID_INIT = 7,
	SECINITSID_ANY_SOCKET,
	SECINITSID_PORT,
	SECINITSID_NETIF,
	SECINITSID_NETMSG,
	SECINITSID_NODE,
	SECINITSID_DEVNULL = 27,
	/* Tasks without a label: the machine as it was before us, unconfined. */
	TG_SID_MACHINE = 28,
	/* The daemon's canary, which may nothing, whatever policy and mode say. As an object it is
	 * what the daemon is. */
	TG_SID_CANARY = 30,
	TG_FIRST_SID = 32,
};
/*
 * With the SID of an object: enforcement lives by it. The context is the same, and so is who may
 * look at it; it is changed by those only that have `security setenforce`, whatever else the policy
 * allows (bpf/survival_object.h).
 */
#define TG_SID_SURVIVAL (1u << 15)

#define TG_SECCLASSES 128u
#define TG_TYPES (1u << 16)
#define TG_NO_PERMISSION 0xffu

/* How the policy numbers a class of ours (classes.txt). */
struct tg_secclass {
	__u32 class;   /* 0: the policy does not know it */
	__u32 unknown; /* our permissions that the policy does not know */
	__u8 bit[32];  /* of our permission, the policy's; TG_NO_PERMISSION: it has none */
};

/* Policy capabilities that object managers ask for; a bit each in tg_generation.capabilities. */
enum tg_policycap {
	TG_POLICYCAP_NETPEER,
	TG_POLICYCAP_OPENPERM,
	TG_POLICYCAP_EXTSOCKCLASS,
	TG_POLICYCAP_ALWAYSNETWORK,
	TG_POLICYCAP_CGROUPSECLABEL,
	TG_POLICYCAP_NNP_NOSUID_TRANSITION,
	TG_POLICYCAP_GENFS_SECLABEL_SYMLINKS,
	TG_POLICYCAP_IOCTL_SKIP_CLOEXEC,
	TG_POLICYCAP_USERSPACE_INITIAL_CONTEXT,
	TG_POLICYCAP_NETLINK_XPERM,
	TG_POLICYCAP_NETIF_WILDCARD,
	TG_POLICYCAP_GENFS_SECLABEL_WILDCARD,
	TG_POLICYCAP_FUNCTIONFS_SECLABEL,
	TG_POLICYCAP_MEMFD_CLASS,
};

/*
 * What a generation calls what the one before it called otherwise, by the numbers of that one. The
 * kernel may give SIDs while generations are swapped: their contexts are translated by it.
 */
#define TG_USERS 4096u
#define TG_ROLES 4096u
struct tg_translation {
	__u32 from; /* number of the generation before; 0: none */
	__u32 reserved;
	__u16 user[TG_USERS], role[TG_ROLES]; /* 0: this generation has none */
	__u16 type[TG_TYPES];
	__u16 level[TG_LEVELS]; /* TG_LEVELS: none */
};

/*
 * What a policy labels in the network (portcon, nodecon, netifcon). It lies in the generation, with
 * its SIDs: who switches generations switches all of it at once. A port is looked up by its number,
 * as no map would be quicker; hosts and interfaces are few, and the first that fits counts, as in
 * the kernel (security_node_sid).
 */
enum tg_transport { TG_TRANSPORT_TCP, TG_TRANSPORT_UDP, TG_TRANSPORT_DCCP, TG_TRANSPORT_SCTP };
#define TG_TRANSPORTS 4u
#define TG_PORTS (1u << 16)
#define TG_NODES 256u
#define TG_INTERFACES 128u

struct tg_node {
	__u32 sid;    /* 0: the last one was before */
	__u32 family; /* AF_INET or AF_INET6 */
	__u32 address[4], mask[4];
};
struct tg_interface {
	__u32 sid; /* 0: the last one was before */
	__u32 reserved;
	__u64 name[2], mask[2]; /* the bytes of the name that count: of a pattern, a prefix */
};
struct tg_network {
	__u16 port[TG_TRANSPORTS][TG_PORTS]; /* SIDs; 0: SECINITSID_PORT */
	struct tg_node node[TG_NODES];
	struct tg_interface interface[TG_INTERFACES];
};

#define TG_NAME_PLACE_BITS 15u
#define TG_NAME_PLACES (1u << TG_NAME_PLACE_BITS)

/* One policy in force: the only element of an array map, which the map `generations` holds. */
struct tg_generation {
	struct tg_tables tables;
	struct tg_levels levels;
	struct tg_context contexts[TG_SIDS]; /* type 0: no context of this generation */
	struct tg_secclass classes[TG_SECCLASSES];
	__u64 unconfined[TG_TYPES / 64]; /* bit = type: of domains that are asked nothing */
	__u64 named[TG_TYPES / 64]; /* bit = type: of directories in which a file's name may decide
				       its label */
	/* bit = tg_name_place of a name that a rule has: other names need not be read. */
	__u64 names[TG_NAME_PLACES / 64];
	__u64 executors[TG_TYPES / 64]; /* bit = type: of the program that systemd starts units' own
					   programs by, which stays the machine's */
	__u64 capabilities;
	__u32 number;
	__u32 allow_unknown; /* handle_unknown is allow */
	__u32 last_level; /* the highest level identifier; a new one is taken by adding, here or in
			     the kernel */
	__u32 reserved;
	__u8 policy[32]; /* SHA-256 of the built policy: a file is believed only if it is that */
	struct tg_translation translation;
	struct tg_network network;
};

/* The places of the map `generations`. */
enum tg_which { TG_IN_FORCE, TG_BEFORE, TG_CANDIDATE, TG_GENERATIONS };

/* `differences`: what the candidate would have decided otherwise. */
struct tg_difference_key {
	__u32 source, target, class; /* SIDs, SECCLASS */
};
struct tg_difference {
	__u32 denied, granted; /* permissions that are allowed now, and those that are denied */
	__u64 count;	       /* of questions */
	__u64 since;	       /* nanoseconds since boot: the first */
	__u32 process, reserved;
	char command[16]; /* of the first */
};

/* `sids`: the SID of a context of a generation. */
struct tg_sid_key {
	struct tg_context context;
	__u32 generation;
};

/* `tasks`, task storage (cred_security_struct of SELinux). A task without one is the machine's, or
 * has lost it (tg_make_task). */
struct tg_task {
	__u32 sid;
	__u32 old_sid; /* before the last exec */
	__u32 exec_sid, create_sid, key_create_sid,
		socket_create_sid; /* 0: by the policy's rules */
	__u32 next_sid;		   /* between bprm_creds_for_exec and bprm_committing_creds */
	__u32 flags;
	/* The object that is being made: inode_create and its like have decided, d_instantiate
	 * labels, where inode_init_security is never called. */
	struct tg_creation {
		__u64 dentry, name; /* address; hash and length */
		__u32 sid;
		__u32 reserved;
	} creation;
	/* The label of what the current task makes with these overridden credentials: overlayfs
	 * says it before it makes something in its upper layer. */
	__u64 create_cred;
	__u32 create_cred_sid;
	__u32 renamed; /* a number of the two dentries that it has renamed last (tg_may_exchange) */
	__u64 made;    /* the inode that it has made last: its address, with TG_MADE_NAMED */
};
#define TG_MADE_NAMED 1ull	/* it has the label that was said for these credentials */
#define TG_TASK_TABLE_SHARED 2u /* others had its descriptors when it began to exec */
#define TG_TASK_PERMISSIVE 1u	/* `run --permissive`: what is denied is granted, and audited */
/* Threads of this process have had contexts of their own: who speaks for it is not known. Of the
 * thread group's leader. */
#define TG_TASK_MIXED 4u
/* Its storage was lost (tg_make_task), and with it what it said of its threads, and what it or
 * overlayfs had said of what it makes. */
#define TG_TASK_REMADE 8u

/*
 * prctl(TG_PRCTL, attribute, SID, 0, 0) sets an attribute of the calling thread, as writing
 * /proc/thread-self/attr/NAME does under SELinux; SID 0 takes it away. A hook cannot tell prctl(2)
 * that something is done: where it returns 0 the kernel goes on, knows no such option, and says
 * EINVAL. So done is the error EALREADY, and EINVAL means that nothing is enforced.
 *
 * A thread becomes another subject with credentials that nobody shares and no file was opened with:
 * prctl(PR_SET_KEEPCAPS, prctl(PR_GET_KEEPCAPS)) makes new ones. EAGAIN: these are not.
 */
#define TG_PRCTL 0x54474154u
enum tg_attribute {
	TG_ATTRIBUTE_CURRENT = 1,
	TG_ATTRIBUTE_EXEC,
	TG_ATTRIBUTE_FSCREATE,
	TG_ATTRIBUTE_KEYCREATE,
	TG_ATTRIBUTE_SOCKCREATE,
	/* 1: what is denied to this thread and its children is granted, and audited; of unconfined
	 * callers only */
	TG_ATTRIBUTE_PERMISSIVE,
};

/* `inodes`, inode storage: the label that is in force. */
struct tg_inode {
	__u32 sid;
	__u32 class;	/* SECCLASS of a socket or an anonymous inode; 0: by the inode's mode */
	__u32 task_sid; /* of who made it */
	__u32 node;	/* in a genfscon tree: where below this directory labels are looked up; 0:
			   nowhere */
	__u32 flags;
};
#define TG_INODE_DURABLE 1u /* `labels` has an entry for it */
#define TG_INODE_TASK 2u    /* of a process, in proc: what lies in it is labelled by its path */
#define TG_INODE_NO_NODE 4u /* its node is not known yet */
#define TG_INODE_RING 8u    /* an io_uring, which may hold files of its own */
/* Of a socket that was being accepted: it had no sock yet, which has the label. */
#define TG_INODE_ACCEPTED 16u
/* It got another generation, by which its label is to be kept when it leaves memory. */
#define TG_INODE_RENUMBERED 32u
/* A directory that `active` has had since it is in memory, or whose attribute is known to be there.
 */
#define TG_INODE_ACTIVE 64u

/* `sockets`, socket storage (sk_security_struct of SELinux). A socket without one is the machine's.
 */
struct tg_socket {
	__u32 sid, class; /* SECCLASS */
};

/* `labels`, the durable ones: of files whose label is not their directory's. An entry for inode 0
 * says that the labels of a subvolume of btrfs were read. */
struct tg_label_key {
	__u64 inode;
	__u64 subvolume; /* btrfs: each subvolume numbers its inodes itself; elsewhere 0 */
	__u32 device, generation;
};
struct tg_label_value {
	__u32 sid;
	__u16 dirty; /* the daemon has still to write the attribute */
	__u16 share; /* whose it is: a place in tg_state.shares */
};

/* `unwritten`: labels that have become dirty since the daemon last took all that are there. A label
 * may be noted by it when its file system is gone, or its device number another's. */
struct tg_unwritten {
	__u8 uuid[16]; /* of the file system; zeros: it has none */
	__u32 sid;
};

enum tg_fs_behaviour {			/* fs_use of a file system */
		       TG_FS_GENFS = 1, /* by path, genfscon */
		       TG_FS_XATTR,
		       TG_FS_TRANS,
		       TG_FS_TASK,
};

/* `filesystems`: by the type's name. */
struct tg_fs_name {
	char text[32];
};
struct tg_filesystem {
	__u32 behaviour; /* enum tg_fs_behaviour */
	__u32 sid;	 /* of the file system; its files' too, for genfs, when no path matches */
	__u32 node;	 /* genfs: the tree's root, 0: none */
	__u32 reserved;
};

/* `superblocks`: by device number, from the first look to unmount. */
struct tg_superblock {
	__u64 address;		    /* 0: made by the daemon, before the programs have seen it */
	__u32 generation;	    /* that the next three are of */
	__u32 sid, behaviour, node; /* as in struct tg_filesystem */
	__u32 flags;
	__u32 reserved;
	__u8 uuid[16]; /* zeros: it has none */
};
/* What is kept on it is known: its labels were read. Before, an inode of a file system with
 * attributes has a label only if it was made since. The daemon sets this, after it has deleted the
 * entries of `labels` for the device and walked. */
#define TG_SUPERBLOCK_WALKED 1u
#define TG_SUPERBLOCK_SETTABLE 2u /* its files' labels may be set (SBLABEL_MNT) */

/* `genfs`, a trie: the longest prefix of a name below a node. */
#define TG_GENFS_NAME 60u
struct tg_genfs_key {
	__u32 bits; /* of `node` and the name */
	__u32 node;
	char name[TG_GENFS_NAME];
};
struct tg_genfs_value {
	__u32 sid;    /* 0: none ends here */
	__u32 node;   /* below the directory of exactly this name; 0: none */
	__u32 length; /* of the name */
	__u32 class;  /* 0: any */
};

/*
 * `units`, a trie: contexts of systemd's units, by the names of their cgroups. The name of an
 * instance begins with its template's, up to the `@`; a whole name ends with its NUL, and is
 * longer.
 */
#define TG_UNIT_NAME 124u
struct tg_unit_key {
	__u32 bits; /* of the name */
	char name[TG_UNIT_NAME];
};
struct tg_unit {
	__u32 sid; /* 0: that of the program's transition */
	__u32 flags;
};
#define TG_UNIT_TEMPLATE 1u /* the name is the beginning of a service's */
#define TG_UNIT_UNKNOWN 2u  /* its context is none of the policy in force: nothing starts */
#define TG_UNIT_SEEN 4u	    /* it was confined before: the daemon is told what begins */

/*
 * `objects`: what has neither an inode nor storage, by its address: System V objects and their
 * messages, keys, performance events, BPF maps and programs. What is not there was made by the
 * machine, or before the programs were: it has TG_SID_MACHINE.
 */
struct tg_labelled {
	__u32 sid;
	__u16 class; /* SECCLASS */
	__u16 share; /* whose it is: a place in tg_state.shares */
};

/* `guarded`: our own maps and programs, by identifier; who opens one, and is confined, needs the
 * permissions of class security that change what is enforced. */
struct tg_guarded {
	__u32 kind; /* enum tg_guarded_kind */
	__u32 id;
};
enum tg_guarded_kind { TG_GUARDED_MAP = 1, TG_GUARDED_PROGRAM };

/* Why something failed, counted; `status` tells them. A confined subject was denied each time. */
enum tg_failure {
	TG_FAILED_NO_GENERATION,
	TG_FAILED_NO_CONTEXT,	/* a SID that the generation has no context for */
	TG_FAILED_NO_LABEL,	/* an inode without one */
	TG_FAILED_TASK_STORAGE, /* the helper returned nothing */
	TG_FAILED_INODE_STORAGE,
	TG_FAILED_SIDS_FULL,
	TG_FAILED_LEVELS_FULL,
	TG_FAILED_LABELS_FULL,
	TG_FAILED_SUPERBLOCK,
	TG_FAILED_CREDENTIALS, /* overridden ones, whose subject is not known */
	TG_FAILED_EVENT_LOST,  /* the ring buffer was full */
	TG_FAILED_EVENT_LIMIT, /* above audit_limit */
	TG_FAILED_DESCRIPTORS, /* more than can be looked at */
	TG_FAILED_NEW_LABEL, /* a new object would have a context that the policy does not permit */
	TG_FAILED_SCRATCH,   /* more decisions at once on a processor than there is memory for */
	TG_FAILED_OWNERS_FULL,	/* who set a file's owner is not known */
	TG_FAILED_OBJECTS_FULL, /* who made a System V object, a message, a key, ... is not known */
	TG_FAILED_SOCKET_STORAGE,
	TG_FAILED_SHADOW,      /* the candidate could not be asked, or its difference not counted */
	TG_FAILED_LABELS_LOST, /* of files that are unlabelled: a crash may have taken the label */
	/* Who asked for a place holds his share, one for each of enum tg_room. */
	TG_FAILED_SHARE,
	TG_FAILED_SHARE_LAST = TG_FAILED_SHARE + 3,
	TG_FAILED_UNIT,		/* of a unit's process, whose context the policy does not know */
	TG_FAILED_NOT_LABELLED, /* of files that the daemon could not read or label */
	TG_FAILURES = 32,
};

/* Object managers, for statistics. */
enum tg_manager {
	TG_MANAGER_FILE,
	TG_MANAGER_DIRECTORY,
	TG_MANAGER_FILESYSTEM,
	TG_MANAGER_PROCESS,
	TG_MANAGER_CAPABILITY,
	TG_MANAGER_DESCRIPTOR,
	TG_MANAGER_IPC,
	TG_MANAGER_KEY,
	TG_MANAGER_BPF,
	TG_MANAGER_PERF,
	TG_MANAGER_OTHER,
	TG_MANAGER_SOCKET,
	TG_MANAGER_NETWORK,
	TG_MANAGERS = 16,
};
struct tg_statistics {
	__u64 asked, cached, tables, denied;
};

/*
 * Caches, direct-mapped arrays of single words, each read and written at once, so that no lock is
 * needed (bpf/cache.h says what is in one). Who changes what they were filled from changes it, adds
 * 1 to `epoch`, and then clears them; who fills one reads `epoch` first and clears its own entry
 * when `epoch` is another afterwards.
 */
#define TG_TASK_ENTRIES 4096u
#define TG_ACCESS_ROWS 16384u
#define TG_ACCESS_WAYS 4u
#define TG_ACCESS_SID 19u /* where an entry has its subject: above the permissions */
#define TG_AVC_ENTRIES 8192u
#define TG_TRANSITION_ENTRIES 8192u
#define TG_LIVE 16u
#define TG_LIVE_COMING 0x10000u /* with a SID in tg_state.live: `any` is not changed yet */
#define TG_CREDENTIALS 16384u
#define TG_VITAL 3u /* the pins' directory, the daemon's folder, its configuration */
#define TG_CHANGED 64u

/* Where btrfs has an inode's subvolume. The daemon says it as soon as it knows; until then no label
 * is kept there. */
struct tg_btrfs {
	__u32 inode;  /* struct btrfs_inode: the VFS's inode */
	__u32 root;   /* likewise: the subvolume */
	__u32 number; /* struct btrfs_root: the subvolume's number */
	__u32 known;
};

/*
 * What all need and there is so much of: places in the maps of these names. What has one knows in
 * whose share it is, and gives it back when it goes.
 *
 * Each user who is not root has a share, and each confined domain of root; what unconfined root,
 * the kernel and the daemon take is the machine's. A share is an eighth of a room. Of a room all
 * users together may take a half, all domains three eighths; an eighth at least is the machine's.
 */
enum tg_room { TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS, TG_ROOM_OWNERS };
#define TG_ROOMS 4u
#define TG_EIGHTHS_OF_ONE 1u
#define TG_EIGHTHS_OF_USERS 4u
#define TG_EIGHTHS_OF_DOMAINS 3u

enum tg_holders { TG_HOLDERS_MACHINE, TG_HOLDERS_DOMAINS, TG_HOLDERS_USERS };
#define TG_HOLDERS 3u

/* Places of shares: the machine's; what domains and users have in common for whom there is no
 * place; domains; users. */
#define TG_SHARES_OF_DOMAINS 1024u
#define TG_SHARES_OF_USERS 2048u
#define TG_FIRST_SHARE_OF_DOMAINS TG_HOLDERS
#define TG_FIRST_SHARE_OF_USERS (TG_FIRST_SHARE_OF_DOMAINS + TG_SHARES_OF_DOMAINS)
#define TG_SHARES (TG_FIRST_SHARE_OF_USERS + TG_SHARES_OF_USERS)
#define TG_SHARE_TRIES 8u /* places in which one is looked for */
struct tg_share {
	__u64 holder; /* TG_HOLDER; 0: free */
	__u32 held[TG_ROOMS];
	/* A walk has found no room for a label of a file of his: of his files, those whose label is
	 * not written down have none. */
	__u32 labels_left;
	/* Who set the owner of a file of his is not known: TG_OWNERS_LOST. */
	__u32 owners_lost;
};
/* Of files that a confined domain has opened, and of the machine's. */
#define TG_OWNERS_LOST 1u
#define TG_OWNERS_LOST_OF_MACHINE 2u
#define TG_HOLDER(holders, number) ((__u64)(holders) << 32 | (number)) /* uid or SID */

/* Uids that a user may give to processes and files in user namespaces of his (subuid(5)): he has
 * one share with all of them. The first place stands for no range; free ones are above all. */
struct tg_subordinate {
	__u32 first, last, user;
};
#define TG_SUBORDINATES 1024u

#define TG_AUDIT_SOURCES 256u

/* An object without a label that a confined process has met, and the process. */
struct tg_unlabelled {
	__u64 inode;
	__u32 device, process;
	char command[16];
};

/* All global variables of the programs; the daemon has them mapped. */
struct tg_state {
	/* settings */
	__u32 enforcing;
	__u32 statistics;	  /* somebody asks for them */
	__u32 audit_limit;	  /* events a second; what is above is counted */
	__u32 labelling_complete; /* the first walk is over: an inode without label is a failure */
	__u32 shadow;		  /* a candidate is asked, too */
	__u32 no_lookups;	  /* inode_permission is not attached: others ask what it would */
	/* Descriptors are asked about when they are used, not when a process takes them along into
	 * another domain: file_permission is attached. */
	__u32 inherit;
	__u64 epoch;
	/* What marks an entry that holds for any live confined subject, as it stands there: 0x8000
	 * | a count of changes of `live`, above TG_ACCESS_SID; 0: there are none, for there are
	 * more subjects than TG_LIVE. */
	__u64 any;
	__u32 live[TG_LIVE]; /* SIDs of confined subjects that a task has or had; 0: free */
	__u32 last_sid;
	/* The daemon's process: who signals or traces it, and is confined, needs security
	 * setenforce; it alone writes the attribute of labels. 0: none. Of a daemon that was killed
	 * the number stays: a process that has it is the daemon only if it began then. */
	__u32 daemon;
	__u64 daemon_began; /* nanoseconds since boot */
	/* A confined subject has mounted something, or has acted with another's credentials: tasks
	 * may act for subjects that may less than they. */
	__u32 overriding;
	/* The device of the file system with the pins: who unmounts it needs it as well. */
	__u32 pins;
	/* What a thread of the daemon is writing to an attribute through overlayfs, and which;
	 * 0: nothing. */
	__u32 new_label, labeller;
	/* The thread of the daemon that asks by getxattr what an object is, and the answer: its SID
	 * and SECCLASS, 0: nobody is asked about it. */
	__u32 asks_label;
	__u32 told_label, told_class;
	__u32 labels_new;  /* the kernel calls inode_init_security: one has come */
	__u32 label_rings; /* TG_EVENT_LABEL was sent; the daemon clears it before it takes what is
			      in `unwritten` */
	/* An inode has got another generation while it was in use. */
	__u32 renumbered;
	/* There was no memory for an entry of `unwritten`. */
	__u32 labels_missed;
	__u64 audit_second, audit_count; /* events in this second */
	__u64 failures[TG_FAILURES];
	__u64 told[TG_FAILURES]; /* of them, what the daemons have written to the audit log */
	__u64 events;
	struct tg_statistics statistic[TG_MANAGERS];
	/* The one that is read most is near the beginning, in reach of a load. */
	__u64 access_cache[TG_ACCESS_ROWS * TG_ACCESS_WAYS];
	/* What enforcement lives by, held by the daemon. */
	struct tg_vital {
		__u64 mount, dentry; /* addresses */
		__u32 device;	     /* of the file system; 0: none. Of a daemon that was killed the
					mount may be another */
		__u32 reserved;
	} vital[TG_VITAL];
	__u32 owners_lost;  /* some share has them */
	__u32 objects_left; /* `objects` has entries of what is gone: they could not be removed */
	__u32 units;	    /* how many entries the map `units` has */
	__u32 switching; /* one generation takes the place of another: caches have answers of both
			  */
	struct tg_btrfs btrfs;
	__u32 changed[TG_CHANGED]; /* by device: something was made, moved or linked there */
	/* Of credentials, by address: no cache, the programs rely on it (bpf/credential.h). */
	__u64 credentials[TG_CREDENTIALS];
	__u32 room[TG_ROOMS]; /* how much there is */
	__u32 held[TG_HOLDERS][TG_ROOMS];
	__u32 labels_left; /* some share has them */
	__u32 reserved_shares;
	struct tg_share shares[TG_SHARES];
	struct tg_subordinate subordinate[TG_SUBORDINATES]; /* sorted; none overlaps another */
	__u32 subordinates_from; /* the first uid of all; 0: there is none */
	__u32 reserved_subordinates;
	__u64 audit_source[TG_AUDIT_SOURCES]; /* events of a source in this second: second 32 |
						 events 32 */
	__u64 task_cache[TG_TASK_ENTRIES];
	__u64 avc[TG_AVC_ENTRIES];
	__u64 transitions[TG_TRANSITION_ENTRIES];
	/* What the daemon knows of the canary, for the next one: when it was denied what it did
	 * last, in nanoseconds since boot; when it was granted something since, 0: never. */
	__u64 canary_denied;
	__u64 canary_granted;
	struct tg_unlabelled unlabelled; /* the last of those that failures count */
};

/* How the running kernel differs from others where nothing can be relocated: whether arguments of
 * hooks are there that others lack. */
struct tg_kernel {
	__u32 setattr_mapped;  /* inode_setattr: the mount's identities, since 6.9 */
	__u32 perf_attributes; /* perf_event_open: the attributes, until 6.14 */
	/* What perf_event_open(2) calls probes of the kernel's code and of programs'; ~0: it has
	 * none. */
	__u32 kprobes, uprobes;
};

/* What the daemon asks the kernel (bpf/programs/inquiry.h), and the answer. */
struct tg_inquiry {
	__u32 source, target, class, av; /* SIDs, SECCLASS, permissions */
	__u32 task;			 /* SID; validate only */
	__u32 place, descriptor; /* which of `vital`, and a file of the daemon's; keep only */
	__u32 process;		 /* who asks the daemon, for the audit */
	__s32 result;		 /* 0, or a negative errno; of sweep how many */
};

/* What a process holds and the policy in force denies (bpf/programs/revocation.h). */
struct tg_held {
	__u64 place; /* of memory its first address, else the descriptor */
	__u32 process, memory;
	__u32 source, target, class; /* SIDs, SECCLASS */
	__u32 denied;		     /* permissions */
	__u32 mixed;		     /* its threads have contexts of their own: perhaps held */
	__u32 reserved;
};

/* Where a task comes from, of one that may have been made while hooks did not run
 * (bpf/programs/lineage.h).
 */
struct tg_lineage {
	__u64 began;   /* nanoseconds since boot */
	__u64 program; /* the open file that it executes: forks have the same one */
	__u64 cgroup;  /* 0: the root of all */
	__u64 execs,
		of_parent; /* what it, and who made it, have executed since the machine's first */
	__u32 task, process, parent, session; /* by number */
	__u32 sid;			      /* 0: it has no label */
	__u32 domain; /* what the machine's becomes by executing the program */
	__u32 user;
	__u32 adopts; /* children of others become its own */
	char name[16];
};

/* A thread of a process. */
struct tg_thread {
	__u64 began; /* nanoseconds since boot */
	__u32 sid, leader;
};

/* `slipped`: tasks to label, and with what SID. */
struct tg_slipped {
	__u64 began;
	__u32 task, reserved;
};

/* Events. */
enum tg_event_kind {
	TG_EVENT_AVC = 1, /* denied, or granted with auditallow */
	TG_EVENT_LABEL,	  /* a label to write: a doorbell, the map has it */
	TG_EVENT_SID,	  /* a context was given a SID: a doorbell likewise */
	/* a file system to walk; of one that was walked, inode: a subvolume, source: the generation
	 * of its root */
	TG_EVENT_MOUNT,
	TG_EVENT_SERVICE, /* the machine executes a program in a unit that was confined before */
};
enum tg_object_kind { /* what `object` of an event tells */
		      TG_OBJECT_NONE,
		      TG_OBJECT_INODE,	    /* device, inode, name: dev=, ino=, name= */
		      TG_OBJECT_PATH,	    /* likewise, and the whole path: path= */
		      TG_OBJECT_IOCTL,	    /* likewise, and ioctlcmd= */
		      TG_OBJECT_CAPABILITY, /* number: capability= */
		      TG_OBJECT_TASK,	    /* number, name: the target's opid= and ocomm= */
		      TG_OBJECT_NAME,	    /* name only, such as kmod= or a file system's */
		      TG_OBJECT_IPC,	    /* number, signed: ipc_key= */
		      TG_OBJECT_SOCKET,	    /* name is a struct tg_endpoints: laddr= and so on */
		      TG_OBJECT_PORT,	/* likewise, of which ports and addresses are asked about */
		      TG_OBJECT_PACKET, /* likewise, of a packet, with netif= */
		      TG_OBJECT_UNIX,	/* a unix socket's name; its file's path, as above */
};

/* What an event tells of a connection, or of a packet. */
struct tg_endpoints {
	__u32 family;
	__u16 port[2];	     /* local and foreign, or source and destination; 0: none */
	__u32 address[2][4]; /* as packets have them; zeros: none */
	char interface[16];
};
#define TG_EVENT_NAME 512u

struct tg_event {
	__u64 time; /* nanoseconds since boot */
	__u32 kind;
	__u32 generation;
	__u32 source, target, class; /* SIDs, SECCLASS */
	__u32 requested, denied;     /* our permissions; denied 0: granted */
	__u32 permissive;
	__u32 pid, tgid;
	__u32 object; /* enum tg_object_kind */
	__u32 number; /* capability, ioctl command, process, key of a System V object */
	__u32 device;
	__u32 result;	/* errno */
	__u32 withheld; /* the policy allows what is denied, but enforcement lives by the object:
			   `security setenforce` is what lacks (TG_SID_SURVIVAL) */
	__u32 reserved;
	__u64 inode;
	char command[16];
	char filesystem[16];
	char name[TG_EVENT_NAME]; /* NUL-terminated; of a path components from the last to the
				     first, each NUL-terminated, `.` at the end if it is cut */
};

#endif
