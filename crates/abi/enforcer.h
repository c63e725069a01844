/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the enforcer's BPF programs and its daemon share: the generation in force, the values
 * of the maps, the events. Numbers are in the kernel's byte order.
 *
 * A SID is the machine's number for a security context, as in SELinux. It stays the same in
 * all generations. Each generation has its own array from SID to context, with its own numbers
 * for users, roles and types.
 */
#ifndef TOLLGATE_ENFORCER_H
#define TOLLGATE_ENFORCER_H

#include "datapath.h"
#include "tables.h"

/* SIDs. The kernel's initial SIDs keep their numbers
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
	/* Tasks without a label: the machine as it was before Tollgate, unconfined. */
	TG_SID_MACHINE = 28,
	/* The daemon's canary, which is allowed nothing, in any policy and mode. As an object
	 * it counts as the daemon. */
	TG_SID_CANARY = 30,
	TG_FIRST_SID = 32,
};
/*
 * A flag beside the SID of an object: enforcement depends on this object. Its context is the
 * same, and so is the decision who may look at it. Only a domain with `security setenforce`
 * can change it, whatever else the policy allows (bpf/survival_object.h).
 */
#define TG_SID_SURVIVAL (1u << 15)

#define TG_SECCLASSES 128u
#define TG_TYPES (1u << 16)
#define TG_NO_PERMISSION 0xffu

/* How the policy numbers one of our classes (classes.txt). */
struct tg_secclass {
	__u32 class;   /* 0: the policy does not have it */
	__u32 unknown; /* our permissions that the policy does not have */
	__u8 bit[32];  /* by our permission: the policy's; TG_NO_PERMISSION: it has none */
};

/* Policy capabilities that object managers look at; one bit each in tg_generation.capabilities. */
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
 * Translates the numbers of the generation before into those of this one. The kernel may
 * assign SIDs while generations are swapped; their contexts are translated by this table.
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
 * What a policy labels in the network (portcon, nodecon, netifcon). It is part of the
 * generation, with its SIDs, so a switch of generations switches all of it at once. A port is
 * looked up by its number, because no map would be faster. Hosts and interfaces are few, and
 * the first match counts, as in the kernel (security_node_sid).
 */
enum tg_transport { TG_TRANSPORT_TCP, TG_TRANSPORT_UDP, TG_TRANSPORT_DCCP, TG_TRANSPORT_SCTP };
#define TG_TRANSPORTS 4u
#define TG_PORTS (1u << 16)
#define TG_NODES 256u
#define TG_INTERFACES 128u

struct tg_node {
	__u32 sid;    /* 0: the end of the list */
	__u32 family; /* AF_INET or AF_INET6 */
	__u32 address[4], mask[4];
};
struct tg_interface {
	__u32 sid; /* 0: the end of the list */
	__u32 reserved;
	__u64 name[2], mask[2]; /* the bytes that must match; for a pattern, its prefix */
};
struct tg_network {
	__u16 port[TG_TRANSPORTS][TG_PORTS]; /* SIDs; 0: SECINITSID_PORT */
	struct tg_node node[TG_NODES];
	struct tg_interface interface[TG_INTERFACES];
};

/* Names of type transitions: a bit of tg_generation's `names` each. */
#define TG_NAME_PLACE_BITS 15u
#define TG_NAME_PLACES (1u << TG_NAME_PLACE_BITS)

/* A policy in force: the only element of an array map, which the map `generations` holds. The host
 * has what is before the tables; their size follows from the map's. */
struct tg_generation {
	struct tg_levels levels;
	struct tg_context contexts[TG_SIDS]; /* type 0: no context of this generation */
	struct tg_secclass classes[TG_SECCLASSES];
	__u64 unconfined[TG_TYPES / 64]; /* bit = type: domains for which nothing is checked */
	__u64 named[TG_TYPES / 64]; /* bit = type: directories in which the name of a new file may
				       decide its label */
	/* bit = tg_name_place of a name in a rule; other names need not be read */
	__u64 names[TG_NAME_PLACES / 64];
	__u64 executors[TG_TYPES / 64]; /* bit = type: programs by which systemd starts the
					   programs of units; who runs one stays the machine's */
	__u64 guarded[TG_TYPES / 64];	/* bit = type: domains whose processes the guard checks */
	__u64 capabilities;
	__u32 number;
	__u32 allow_unknown; /* handle_unknown is allow */
	__u32 last_level;    /* the highest level identifier; a new one is assigned by an atomic
				addition, here or in the kernel */
	__u32 reserved;
	__u8 policy[32]; /* SHA-256 of the built policy: a file is trusted only if it has this
			    digest */
	struct tg_translation translation;
	struct tg_network network;
	struct tg_datapath datapath;
	__u32 identifiers[TG_SIDS]; /* the cluster's number for a SID's context, in sealed labels;
				       0: it has none yet */
#ifdef __bpf__
	struct tg_tables tables; /* the rest of the map's value, of the programs' TG_CAPACITY */
#endif
};

/* `identified`: the SID of the context with an identifier. */
struct tg_identifier_key {
	__u32 generation, identifier;
};

/* The places of the map `generations`. */
enum tg_which { TG_IN_FORCE, TG_BEFORE, TG_CANDIDATE, TG_GENERATIONS };

/* `differences`: decisions in which the candidate differs from the policy in force. */
struct tg_difference_key {
	__u32 source, target, class; /* SIDs, SECCLASS */
};
struct tg_difference {
	__u32 denied, granted; /* permissions that would be denied, or granted, in addition */
	__u64 count;	       /* number of checks */
	__u64 since;	       /* of the first check, in nanoseconds since boot */
	__u32 process, reserved;
	char command[16]; /* of the process that was checked first */
};

/* `sids`: the SID of each context of a generation. */
struct tg_sid_key {
	struct tg_context context;
	__u32 generation;
};

/* `tasks`, task storage (cred_security_struct of SELinux). A task without an entry is plain
 * (struct tg_plain_task), or the machine's, or has lost its entry (tg_make_task). */
struct tg_task {
	__u32 sid;
	__u32 old_sid; /* before the last exec */
	__u32 exec_sid, create_sid, key_create_sid,
		socket_create_sid; /* 0: by the policy's rules */
	__u32 next_sid;		   /* between bprm_creds_for_exec and bprm_committing_creds */
	__u32 flags;
	/* The object that is being made. inode_create and the like have decided, and
	 * d_instantiate sets the label where inode_init_security is never called. */
	struct tg_creation {
		__u64 dentry, name; /* address; hash and length */
		__u32 sid;
		__u32 reserved;
	} creation;
	/* The label of what the current task makes with these overridden credentials: overlayfs
	 * sets it before it makes something in its upper layer. */
	__u64 create_cred;
	__u32 create_cred_sid;
	__u32 renamed; /* hash of the two dentries that it renamed last (tg_may_exchange) */
	__u64 made;    /* address of the inode that it made last, with TG_MADE_NAMED */
};
#define TG_MADE_NAMED 1ull	/* it has the label in create_sid of these credentials */
#define TG_TASK_TABLE_SHARED 2u /* other tasks shared its descriptors when its exec began */
#define TG_TASK_PERMISSIVE 1u	/* `run --permissive`: what is denied is granted, and audited */
/* Threads of this process have had contexts of their own, so it is not known which one speaks
 * for the process. Set for the leader of the thread group. */
#define TG_TASK_MIXED 4u
/* Its storage was lost (tg_make_task). With it were lost the flags about its threads, and the
 * labels that it or overlayfs had set for new objects. */
#define TG_TASK_REMADE 8u

/*
 * prctl(TG_PRCTL, attribute, SID, 0, 0) sets an attribute of the calling thread, as writing to
 * /proc/thread-self/attr/NAME does under SELinux. SID 0 removes it. A hook of prctl(2) cannot
 * report success: if it returns 0, the kernel continues and rejects the unknown option with
 * EINVAL. So EALREADY means success, and EINVAL means that nothing is enforced.
 *
 * A thread becomes another subject with credentials that nobody shares and that no file was
 * opened with: prctl(PR_SET_KEEPCAPS, prctl(PR_GET_KEEPCAPS)) makes new ones. EAGAIN means
 * that the thread's credentials are not such ones.
 */
#define TG_PRCTL 0x54474154u
enum tg_attribute {
	TG_ATTRIBUTE_CURRENT = 1,
	TG_ATTRIBUTE_EXEC,
	TG_ATTRIBUTE_FSCREATE,
	TG_ATTRIBUTE_KEYCREATE,
	TG_ATTRIBUTE_SOCKCREATE,
	/* 1: what is denied to this thread and its children is granted, and audited. Only for
	 * unconfined callers. */
	TG_ATTRIBUTE_PERMISSIVE,
};

/* `inodes`, inode storage: the label in force, unless the inode is plain (struct tg_plain_inode).
 * The inode of a socket has none: it has that of its sock. */
struct tg_inode {
	__u32 sid;
	__u32 class;	/* SECCLASS of an anonymous inode; 0: by the inode's mode */
	__u32 task_sid; /* SID of the task that made it */
	__u32 node; /* genfscon tree: the node below which labels are looked up for what is in this
		       directory; 0: none */
	__u32 flags;
};
#define TG_INODE_DURABLE 1u /* the map `labels` has an entry for it */
#define TG_INODE_TASK 2u    /* in proc, of a process: what is in it is labelled by its path */
#define TG_INODE_NO_NODE 4u /* its node is not known yet */
#define TG_INODE_RING 8u    /* an io_uring, which may hold open files of its own */
/* It got another generation number. Its label must be kept under that number when it leaves
 * memory. */
#define TG_INODE_RENUMBERED 32u
/* A directory that was in `active` since it came into memory, or whose attribute is known to be
 * written. */
#define TG_INODE_ACTIVE 64u
/* A directory: state.interval when it was made; 0: before it came into memory. */
#define TG_INODE_INTERVAL_SHIFT 16
#define TG_INODE_INTERVAL_MIN 0x80u
#define TG_INODE_INTERVAL_MAX 0xffu

/* The label of a socket (sk_security_struct of SELinux). */
struct tg_socket {
	__u32 sid, class; /* SECCLASS */
	__u32 peer;	  /* SID of the other end; of a datagram socket, of what it received last;
			     0: not known */
	__u32 labelled;	  /* `tg_labels_epoch` when its packets were last seen to have labels, or to
			     need none */
};

/* `sockets`, socket storage; of a plain socket, in its place (struct tg_plain_socket). A socket
 * without either is the machine's. */
struct tg_sock {
	struct tg_socket label;
	__u64 used;	  /* what was granted on it (use.h) */
	__u64 unconfined; /* when its domain was last found to be unconfined, or not to be
			     (socket_label.h) */
};

/* `texts`: a context as text, by SID. */
#define TG_TEXT_WORDS 128u
struct tg_text {
	__u32 length; /* in bytes, with the NUL at its end; 0: there is no room, or not yet */
	__u32 range;  /* where the range begins, with its colon; without one, where the NUL is */
	__u64 words[TG_TEXT_WORDS]; /* the bytes, and zeros */
};

/* `heard`: the labels that a datagram socket has received, by sender. */
struct tg_heard {
	__u64 socket;	  /* its cookie */
	__u32 family;	  /* AF_INET or AF_INET6 */
	__u32 port;	  /* the sender's */
	__u32 address[4]; /* as packets have it; IPv4 uses the first word */
};

/* `labels`, the durable labels: those of files whose label differs from their directory's. An
 * entry for inode 0 says that the labels of a btrfs subvolume were read. */
struct tg_label_key {
	__u64 inode;
	__u64 subvolume; /* btrfs: each subvolume numbers its inodes itself; else 0 */
	__u32 device, generation;
};
struct tg_label_value {
	__u32 sid;
	__u16 dirty; /* the daemon has yet to write the attribute */
	__u16 share; /* the share that it counts in: an index of tg_state.shares */
	/* tg_superblock.number of the file system that it was written for. If it differs, another
	 * file system had the device before. 0: the walk has read it in an attribute. */
	__u32 mounted;
};

/* `unwritten`: labels that have become dirty since the daemon last took all entries. When the
 * daemon handles a label, its file system may be gone, or its device number may belong to
 * another one. */
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
	__u32 sid;	 /* of the file system; genfs: also of files that match no path */
	__u32 node;	 /* genfs: the tree's root, 0: none */
	__u32 reserved;
};

/* `superblocks`: by device number, from first use until unmount. */
struct tg_superblock {
	__u64 address;		    /* 0: made by the daemon, before the programs have seen it */
	__u32 generation;	    /* number of the generation that the next three belong to */
	__u32 sid, behaviour, node; /* as in struct tg_filesystem */
	__u32 flags;
	__u32 number;  /* of those that the programs have seen; 0: they have not */
	__u8 uuid[16]; /* zeros: it has none */
	__u32 context; /* the SID of all its files, as by the mount option context=: it is a
			  container's root; 0: each file has its own */
	__u32 reserved;
};
/* The labels of this file system were read. Before that, an inode of a file system with
 * attributes has a label only if it was made since. The daemon sets this flag after it has
 * deleted the entries of `labels` for the device and walked the file system. */
#define TG_SUPERBLOCK_WALKED 1u
#define TG_SUPERBLOCK_SETTABLE 2u /* its files' labels may be set (SBLABEL_MNT) */
/* It is new to the machine: what has no attribute there has no label to be read (label_unwalked.h).
 */
#define TG_SUPERBLOCK_NEW 4u

/* `uuids`: file systems that were labelled here, or seen, each with its tg_superblock.number (0:
 * only notes are known). Labels of their files may be noted, or still be in memory, where
 * attributes do not tell. */
struct tg_uuid {
	__u8 bytes[16];
};

/* `bare`, by the type's name: of the inode at an address all these words are 0 under their masks
 * only if it has no extended attribute. */
#define TG_BARE_WORDS 2u
struct tg_bare {
	__u64 mask[TG_BARE_WORDS];
	__u32 at[TG_BARE_WORDS]; /* from the beginning of the file system's own structure */
	__u32 inode;		 /* where the VFS's inode is in that */
	__u32 reserved;
};

/* `genfs`, a trie: finds the longest prefix of a name below a node. */
#define TG_GENFS_NAME 60u
struct tg_genfs_key {
	__u32 bits; /* of `node` and the name */
	__u32 node;
	char name[TG_GENFS_NAME];
};
struct tg_genfs_value {
	__u32 sid;    /* 0: no path ends here */
	__u32 node;   /* the node below the directory of exactly this name; 0: none */
	__u32 length; /* of the name */
	__u32 class;  /* 0: any */
};

/*
 * `units`, a trie: contexts of systemd units, by the names of their cgroups. The name of an
 * instance begins with its template's name up to the `@`. A complete name ends with its NUL,
 * and so is longer.
 */
#define TG_UNIT_NAME 124u
struct tg_unit_key {
	__u32 bits; /* of the name */
	char name[TG_UNIT_NAME];
};
struct tg_unit {
	__u32 sid; /* 0: the one of the program's transition */
	__u32 flags;
};
#define TG_UNIT_TEMPLATE 1u /* the name is the beginning of an instance's name */
#define TG_UNIT_UNKNOWN 2u  /* the policy in force lacks its context: nothing starts */
#define TG_UNIT_SEEN 4u	    /* it was confined before: its starts are reported */

/*
 * `containers`: the contexts of containers, by the number of the cgroup. The kernel gives the
 * number of a cgroup that is gone to no other before it boots again.
 */
#define TG_CONTAINERS 2048u
#define TG_CONTAINER_DEPTH 32u /* the deepest cgroup that can be a container's */
struct tg_container {
	__u32 sid;    /* of its processes */
	__u32 files;  /* of the files of `device` */
	__u32 device; /* of its root file system; 0: files there have labels of their own */
	__u32 reserved;
};

/*
 * `objects`: labels, by address, of objects with neither an inode nor storage: System V
 * objects and their messages, keys, performance events, BPF maps and programs. An object
 * without an entry was made by the machine, or before the programs were attached: its SID is
 * TG_SID_MACHINE.
 */
struct tg_labelled {
	__u32 sid;
	__u16 class; /* SECCLASS */
	__u16 share; /* the share that it counts in: an index of tg_state.shares */
	/* Of a message queue that has an entry: the SID of its messages that have none. 0: no
	 * message was sent yet. */
	__u32 messages;
	__u32 reserved;
	__u64 reading, writing; /* what was granted on it, for one subject each (use.h) */
};

/* tg_state.messages: what there has been since the start. */
#define TG_MESSAGES_LABELLED 1u /* a message queue with an entry in `objects` */
#define TG_MESSAGES_OWN 2u	/* a message with one */

/* `guarded`: the enforcer's own maps and programs, by identifier. A confined process that opens
 * one needs the permissions of class security that change what is enforced. */
struct tg_guarded {
	__u32 kind; /* enum tg_guarded_kind */
	__u32 id;
};
enum tg_guarded_kind { TG_GUARDED_MAP = 1, TG_GUARDED_PROGRAM, TG_GUARDED_LINK };

/* Reasons for failures, which are counted and shown by `status`. A confined subject was denied
 * each time. */
enum tg_failure {
	TG_FAILED_NO_GENERATION,
	TG_FAILED_NO_CONTEXT,	/* the generation has no context for a SID */
	TG_FAILED_NO_LABEL,	/* an inode has no label */
	TG_FAILED_TASK_STORAGE, /* the helper returned nothing */
	TG_FAILED_INODE_STORAGE,
	TG_FAILED_SIDS_FULL,
	TG_FAILED_LEVELS_FULL,
	TG_FAILED_LABELS_FULL,
	TG_FAILED_SUPERBLOCK,
	TG_FAILED_CREDENTIALS, /* overridden credentials whose subject is not known */
	TG_FAILED_EVENT_LOST,  /* the ring buffer was full */
	TG_FAILED_EVENT_LIMIT, /* more events than audit_limit */
	TG_FAILED_DESCRIPTORS, /* more descriptors than can be checked */
	TG_FAILED_NEW_LABEL, /* a new object would have a context that the policy does not permit */
	TG_FAILED_SCRATCH,   /* more decisions at once on one processor than there is memory for */
	TG_FAILED_OWNERS_FULL,	/* the process that set a file's owner is not known */
	TG_FAILED_OBJECTS_FULL, /* the process that made a System V object, a message, a key, ... is
				   not known */
	TG_FAILED_SOCKET_STORAGE,
	TG_FAILED_SHADOW, /* the candidate could not be checked, or the difference not counted */
	TG_FAILED_LABELS_LOST, /* files are unlabelled whose label may have been lost in a crash */
	/* The share of the holder who needed a place was used up. One number per enum tg_room. */
	TG_FAILED_SHARE,
	TG_FAILED_SHARE_LAST = TG_FAILED_SHARE + 3,
	TG_FAILED_UNIT,		/* the policy does not have the context of a unit's process */
	TG_FAILED_NOT_LABELLED, /* the daemon could not read or label files */
	TG_FAILED_CONNECTIONS,	/* a zone, or all, began connections with too many levels */
	TG_FAILED_NAMESPACES,	/* too many network namespaces, in all or in a second */
	TG_FAILED_AWAITED,	/* packets in a network namespace have no labels yet */
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
#define TG_STATISTICS_COUNTED 1u  /* tg_state.statistics: each check is counted, */
#define TG_STATISTICS_RECORDED 2u /* and recorded in `checks` */

/* `checks`: one check, in the order in which they were made. */
struct tg_asked {
	__u64 inode;		     /* address; 0: the caches of files do not hold such answers */
	__u32 source, target, class; /* SIDs, SECCLASS */
	__u32 reserved;
};

/*
 * Caches: direct-mapped arrays of single words. Each word is read and written at once, so no
 * lock is needed (bpf/cache.h describes their content). Code that changes what entries were
 * computed from makes the change, adds 1 to `epoch`, and then clears the caches. Code that
 * fills an entry reads `epoch` first, and clears the entry again if `epoch` has changed
 * meanwhile.
 */
#define TG_TASK_ENTRIES 4096u
#define TG_ACCESS_ROWS 16384u
#define TG_ACCESS_WAYS 4u
#define TG_ACCESS_SID 19u /* bit at which the subject begins in an entry, above the permissions */
#define TG_AVC_ENTRIES 8192u
#define TG_TRANSITION_ENTRIES 8192u
#define TG_LIVE 16u
#define TG_LIVE_COMING 0x10000u /* flag of a SID in tg_state.live: `any` is not changed yet */
#define TG_CREDENTIALS 16384u
#define TG_VITAL 3u /* the pins' directory, the daemon's folder, its configuration */
#define TG_CHANGED 64u

/* The offsets by which an inode's subvolume is found on btrfs. The daemon sets them as soon as
 * it knows them. Until then no label is kept on btrfs. */
struct tg_btrfs {
	__u32 inode;  /* struct btrfs_inode: the VFS's inode */
	__u32 root;   /* likewise: the subvolume */
	__u32 number; /* struct btrfs_root: the subvolume's number */
	__u32 known;
};

/*
 * Limited resources that all share: places in the maps of these names. An entry records the
 * share in which it counts, and is subtracted from that share when it is removed.
 *
 * Each user except root has a share, and so has each confined domain of root. What unconfined
 * root, the kernel and the daemon take counts as the machine's. A share is an eighth of a
 * room. All users together may take half of a room, and all domains three eighths; at least
 * one eighth is left to the machine.
 */
enum tg_room { TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS, TG_ROOM_OWNERS };
#define TG_ROOMS 4u
#define TG_EIGHTHS_OF_ONE 1u
#define TG_EIGHTHS_OF_USERS 4u
#define TG_EIGHTHS_OF_DOMAINS 3u

enum tg_holders { TG_HOLDERS_MACHINE, TG_HOLDERS_DOMAINS, TG_HOLDERS_USERS };
#define TG_HOLDERS 3u

/* The places of shares: first the machine's, then one that all domains without a place have in
 * common, and one for users likewise; then the domains; then the users. */
#define TG_SHARES_OF_DOMAINS 1024u
#define TG_SHARES_OF_USERS 2048u
#define TG_FIRST_SHARE_OF_DOMAINS TG_HOLDERS
#define TG_FIRST_SHARE_OF_USERS (TG_FIRST_SHARE_OF_DOMAINS + TG_SHARES_OF_DOMAINS)
#define TG_SHARES (TG_FIRST_SHARE_OF_USERS + TG_SHARES_OF_USERS)
#define TG_SHARE_TRIES 8u /* how many places are searched for one */
struct tg_share {
	__u64 holder; /* TG_HOLDER; 0: free */
	__u32 held[TG_ROOMS];
	/* A walk found no room for the label of one of the holder's files. Those of the files
	 * whose label is not written down have none. */
	__u32 labels_left;
	/* It is not known which process set the owner of one of the holder's files:
	 * TG_OWNERS_LOST. */
	__u32 owners_lost;
};
/* For files that a confined domain has opened, and for files that the machine has opened. */
#define TG_OWNERS_LOST 1u
#define TG_OWNERS_LOST_OF_MACHINE 2u
#define TG_HOLDER(holders, number) ((__u64)(holders) << 32 | (number)) /* uid or SID */

/* Uids that a user may give to processes and files in user namespaces (subuid(5)). The user has
 * one share for all of them. The first place stands for no range; unused places come after all
 * others. */
struct tg_subordinate {
	__u32 first, last, user;
};
#define TG_SUBORDINATES 1024u

#define TG_AUDIT_SOURCES 256u
#define TG_ASKED 256u
#define TG_MET 64u
#define TG_MEET_PAUSE 100000000ull /* nanoseconds */

/* Whether packets can be labelled in another network namespace. Half of the places are for those
 * that belong to the first user namespace, so that no user can take them all. */
enum tg_fullness {
	TG_NAMESPACES_FREE,
	TG_NAMESPACES_HALF, /* only in those of the first user namespace */
	TG_NAMESPACES_FULL,
};

/* An object without a label that a confined process met, and that process. */
struct tg_unlabelled {
	__u64 inode;
	__u32 device, process;
	char command[16];
};

/* A task that has no more than two SIDs: its own, and above 16 bits the one before the last exec.
 * `task` is its address; 0: the place is free. */
struct tg_plain_task {
	__u64 task, sids;
};
#define TG_PLAIN_ROW_BITS 11
#define TG_PLAIN_WAYS 4
#define TG_PLAIN_TASKS (TG_PLAIN_WAYS << TG_PLAIN_ROW_BITS)

/* An inode that has no more than a label: SID 16 | SID of its maker 16 | flags 32. `inode` is its
 * address; 0: the place is free. `identity` is of its number and file system: it tells an inode
 * from another that came to be at the address while hooks did not run. */
struct tg_plain_inode {
	__u64 inode, identity, label;
};
#define TG_PLAIN_INODE_ROW_BITS 14
#define TG_PLAIN_INODES (TG_PLAIN_WAYS << TG_PLAIN_INODE_ROW_BITS)

/* A socket. `sock` is its address; 0: the place is free. */
struct tg_plain_socket {
	__u64 sock;
	struct tg_sock kept;
};
#define TG_PLAIN_SOCKET_TAKEN 1ull /* its label is being written */
#define TG_PLAIN_SOCKET_ROW_BITS 12
#define TG_PLAIN_SOCKETS (TG_PLAIN_WAYS << TG_PLAIN_SOCKET_ROW_BITS)

/* All global variables of the programs; the daemon has them mapped. */
/* The classes in which subjects may do something to themselves, by their place in
 * tg_state.to_itself. */
enum tg_itself {
	TG_ITSELF_CAPABILITY,
	TG_ITSELF_CAPABILITY2,
	TG_ITSELF_PROCESS,
	TG_ITSELF,
};

struct tg_state {
	/* settings */
	__u32 enforcing;
	__u32 audit_limit; /* events per second; those above it are only counted */
	/* These two are one word for who reads both: while either is set, a cache of access vectors
	 * answers nobody by itself (tg_is_cached). */
	__u32 statistics;	  /* TG_STATISTICS_...: somebody wants them to be counted */
	__u32 switching;	  /* generations are being switched: caches have answers of both */
	__u32 labelling_complete; /* the first walk is over: each inode must have a label */
	__u32 shadow;		  /* a candidate is checked as well */
	__u32 no_lookups; /* inode_permission is not attached: other hooks check what it would */
	/* Descriptors are checked when they are used, and not when a process takes them along
	 * into another domain: file_permission is attached. */
	__u32 inherit;
	__u64 epoch;
	/* The kernel's address of this structure, as a number. Only programs know it, and the first
	 * one that needs it writes it down (tg_state_address). 0: none has yet. */
	__u64 address;
	/* The mark of a cache entry that holds for every live confined subject, as it is
	 * stored: 0x8000 | a count of changes of `live`, above TG_ACCESS_SID. 0: there are no
	 * such entries, because there are more subjects than TG_LIVE. */
	__u64 any;
	__u32 live[TG_LIVE];	    /* SIDs of confined subjects that tasks have or had; 0: free */
	__u64 to_itself[TG_ITSELF]; /* what all of them may do to themselves (bpf/itself.h) */
	__u32 last_sid;
	/* The daemon's process number. A confined process needs security setenforce to signal
	 * or trace it. Only the daemon writes the attribute of labels. 0: there is none. The
	 * number of a killed daemon stays: a process with this number is the daemon only if it
	 * began at daemon_began. */
	__u32 daemon;
	__u64 daemon_began; /* nanoseconds since boot */
	/* A confined subject has mounted something, or has acted with another's credentials. So
	 * tasks may act for subjects that have fewer permissions than they have. */
	__u32 overriding;
	/* The device of the file system with the pins. Unmounting it needs the same permission. */
	__u32 pins;
	/* The label that a thread of the daemon is writing to an attribute through overlayfs,
	 * and that thread; 0: none. */
	__u32 new_label, labeller;
	/* The thread of the daemon that requests the label of an object by getxattr, and the
	 * answer: its SID and SECCLASS. 0: the policy is not asked about it. */
	__u32 asks_label;
	__u32 reported_label, reported_class;
	/* The thread of the daemon that wants to find the label of a plain inode in its storage. */
	__u32 settles;
	__u32 labels_new;  /* inode_init_security was called, so this kernel calls it */
	__u32 label_rings; /* TG_EVENT_LABEL was sent; the daemon clears it before it takes the
			      entries of `unwritten` */
			   /* An inode got another generation number while it was in use. */
	__u32 renumbered;
	/* There was no memory for an entry of `unwritten`. */
	__u32 labels_missed;
	/* A directory was entered in `active`; the daemon clears it before it takes them. */
	__u32 activated;
	/* The interval between two moves of checkpoints, TG_INODE_INTERVAL_MIN to _MAX, over and
	 * over; 0: none has moved. */
	__u32 interval;
	__u64 audit_second, audit_count; /* events in this second */
	__u64 failures[TG_FAILURES];
	__u64 reported[TG_FAILURES]; /* how many of them the daemons have written to the audit log
				      */
	__u64 events;
	struct tg_statistics statistic[TG_MANAGERS];
	/* The cache that is read most is near the beginning, within reach of a load
	 * instruction. */
	__u64 access_cache[TG_ACCESS_ROWS * TG_ACCESS_WAYS];
	__u64 make_cache[TG_ACCESS_ROWS * 2]; /* what is made in a directory: files, directories */
	/* The objects that enforcement depends on, held by the daemon. */
	struct tg_vital {
		__u64 mount, dentry; /* addresses */
		__u32 device; /* of the file system; 0: none. The mount of a killed daemon may be
				 another one */
		__u32 reserved;
	} vital[TG_VITAL];
	__u32 owners_lost;  /* at least one share has owners_lost */
	__u32 objects_left; /* `objects` has entries of objects that are gone, which could not be
			       removed */
	__u32 messages;	    /* TG_MESSAGES_... */
	__u32 reserved_messages;
	__u32 units;	   /* number of entries of the map `units` */
	__u32 containers;  /* of the map `containers` */
	__u32 clones_lost; /* a clone of a socket got no label: confined subjects find no socket to
			      be the machine's any more */
	__u32 reserved_clones;
	struct tg_btrfs btrfs;
	__u32 superblocks; /* the last tg_superblock.number */
	__u32 reserved_superblocks;
	__u32 changed[TG_CHANGED]; /* by device: something was made, moved or linked on it */
	/* Of credentials, by address. This is no cache: the programs rely on it
	 * (bpf/credential.h). */
	__u64 credentials[TG_CREDENTIALS];
	__u32 room[TG_ROOMS]; /* number of places */
	__u32 held[TG_HOLDERS][TG_ROOMS];
	__u32 labels_left; /* at least one share has labels_left */
	__u32 reserved_shares;
	struct tg_share shares[TG_SHARES];
	struct tg_subordinate subordinate[TG_SUBORDINATES]; /* sorted; none overlaps another */
	__u32 subordinates_from; /* the lowest uid of all; 0: there is none */
	__u32 reserved_subordinates;
	__u64 audit_source[TG_AUDIT_SOURCES]; /* events of a source in this second: second 32 |
						 events 32 */
	__u64 task_cache[TG_TASK_ENTRIES];
	/* This is no cache: the programs rely on it (bpf/plain_task.h). */
	struct tg_plain_task plain[TG_PLAIN_TASKS];
	struct tg_plain_inode plain_inodes[TG_PLAIN_INODES];	/* likewise (bpf/plain_inode.h) */
	struct tg_plain_socket plain_sockets[TG_PLAIN_SOCKETS]; /* likewise (bpf/plain_socket.h) */
	__u64 avc[TG_AVC_ENTRIES];
	__u64 transitions[TG_TRANSITION_ENTRIES];
	/* What the daemon knows of the canary, for the next daemon: when its last acts were
	 * denied, in nanoseconds since boot; and when one was granted since then (0: never). */
	__u64 canary_denied;
	__u64 canary_granted;
	struct tg_unlabelled unlabelled; /* the last one that `failures` counts */
	__u32 packet_labels;		 /* SIDs that were given to contexts of packets */
	__u32 packet_connections;	 /* likewise to connections that are accepted */
	/* When the daemon was last asked for the context behind an identifier, in nanoseconds since
	 * boot; by identifier and node. */
	__u64 asked[TG_ASKED];
	/* Namespaces of which the daemon was told: the low bits of the cookie 32 | units of
	 * TG_MEET_PAUSE 32; and those of this second. */
	__u64 met[TG_MET];
	__u64 met_second, met_count;
	__u32 namespaces_full;	/* enum tg_fullness, of `namespaces` */
	__u32 namespaces_epoch; /* changes when one is removed from `namespaces` */
	/* What the clock of the kernel's boot time (bpf_ktime_get_boot_ns) lags behind that of the
	 * day, in nanoseconds: sealed labels are valid for a time. */
	__u64 clock;
	/* The key of what proves which SIDs packets carry between network namespaces. `secret` is
	 * written last. */
	__u64 secret, secret_rest;
	__u32 users_namespaces; /* packets are labelled in some of which a user is root */
	__u32 reserved;
};

/* Differences between kernels that cannot be relocated: whether hooks have arguments that they
 * lack on other kernels. */
struct tg_kernel {
	__u32 setattr_mapped;  /* inode_setattr: has the mount's identities, since 6.9 */
	__u32 perf_attributes; /* perf_event_open: has the attributes, until 6.14 */
	/* The numbers by which perf_event_open(2) knows probes of the kernel's code and of
	 * programs' code; ~0: it has none. */
	__u32 kprobes, uprobes;
	__u32 peers_untold; /* no other module answers getsockopt(SO_PEERSEC) */
	__u32 reserved;
};

/* A question of the daemon to the kernel (bpf/programs/inquiry.h), and the answer. */
struct tg_inquiry {
	__u32 source, target, class, av; /* SIDs, SECCLASS, permissions */
	__u32 task;			 /* SID; validate only */
	__u32 place;			 /* which of `vital`; keep only */
	__u32 descriptor;		 /* a file of the daemon's; keep and socket_label */
	__u32 process;			 /* process that asked the daemon, for the audit */
	__s32 result; /* 0, or a negative errno; for sweep the number of entries */
};

/* A question of bpf/cost.bpf.c. */
struct tg_cost_question {
	__u32 source, target, class, av; /* SIDs, SECCLASS, permissions */
	struct tg_question question;	 /* the same in the policy's numbers */
	__u64 took;			 /* result: nanoseconds */
};

/* What bpf/cost.bpf.c is to do, and what it took. */
#define TG_COST_QUESTIONS 4096u
struct tg_cost {
	__u32 count;   /* the questions that are asked */
	__u32 each;    /* each is timed by itself, too */
	__u32 subject; /* SID of the current task */
	__u32 granted; /* results: how many were granted, */
	__u64 took;    /* and the nanoseconds of all */
	struct tg_cost_question question[TG_COST_QUESTIONS];
};

/* Something that a process holds and that the policy in force denies
 * (bpf/programs/revocation.h). */
struct tg_held {
	__u64 place; /* for memory its first address, else the descriptor */
	__u32 process, memory;
	__u32 source, target, class; /* SIDs, SECCLASS */
	__u32 denied;		     /* permissions */
	__u32 mixed;		     /* its threads have contexts of their own, so it may be held */
	__u32 reserved;
};

/* The origin of a task that may have been made while hooks did not run
 * (bpf/programs/lineage.h).
 */
struct tg_lineage {
	__u64 began;   /* nanoseconds since boot */
	__u64 program; /* the open file that it executes; its forks have the same */
	__u64 cgroup;  /* 0: the root */
	__u64 execs,
		of_parent; /* how often it, and its maker, executed a program since the first */
	__u32 task, process, parent, session; /* their numbers */
	__u32 sid;			      /* 0: it has no label */
	__u32 domain; /* the domain that a task of the machine enters by executing the program */
	__u32 user;
	__u32 adopts; /* it adopts orphaned children of other processes */
	__u32 plain;  /* the SID is that of a plain task, perhaps of one that was at its address */
	__u32 reserved;
	char name[16];
};

/* A thread of a process. */
struct tg_thread {
	__u64 began; /* nanoseconds since boot */
	__u32 sid, leader;
	__u32 previous; /* SID before the last exec; 0: its storage says it, or it is lost */
	__u32 reserved;
};

/* `slipped`: tasks that must be labelled, and their SIDs. */
struct tg_slipped {
	__u64 began;
	__u32 task, reserved;
};

/* Events. */
enum tg_event_kind {
	TG_EVENT_AVC = 1, /* denied, or granted with auditallow */
	TG_EVENT_LABEL,	  /* a label must be written; it is in the map */
	TG_EVENT_SID,	  /* a context was given a SID; it is in the map */
	/* A file system must be walked. If it was walked before: `inode` is a subvolume,
	 * `source` the generation of its root. */
	TG_EVENT_MOUNT,
	TG_EVENT_SERVICE, /* a task of the machine executes a program in a unit that was confined
			     before */
	/* A packet's sealed label has an identifier (`source`) of a node (`device`) that is not in
	 * `identified`. `name` is a struct tg_endpoints with the packet's source. */
	TG_EVENT_IDENTIFIER,
	/* A confined process makes an internet socket in a network namespace that is not in
	 * `namespaces`. */
	TG_EVENT_NAMESPACE,
	TG_EVENT_PACKET, /* a packet was dropped: `number` is its fate, `name` a struct
			    tg_endpoints */
};
enum tg_object_kind { /* which members of an event describe the object */
		      TG_OBJECT_NONE,
		      TG_OBJECT_INODE,	    /* device, inode, name: dev=, ino=, name= */
		      TG_OBJECT_PATH,	    /* likewise, and the whole path: path= */
		      TG_OBJECT_IOCTL,	    /* likewise, and ioctlcmd= */
		      TG_OBJECT_CAPABILITY, /* number: capability= */
		      TG_OBJECT_TASK,	    /* number, name: the target's opid= and ocomm= */
		      TG_OBJECT_NAME,	    /* name only, such as kmod= or a file system's */
		      TG_OBJECT_IPC,	    /* number, signed: ipc_key= */
		      TG_OBJECT_SOCKET,	    /* name is a struct tg_endpoints: laddr= and so on */
		      TG_OBJECT_PORT,	/* likewise: the ports and addresses that were checked */
		      TG_OBJECT_PACKET, /* likewise, for a packet, with netif= */
		      TG_OBJECT_UNIX,	/* a unix socket's name; its file's path, as above */
};

/* The addresses of a connection, or of a packet. */
struct tg_endpoints {
	__u32 family;
	__u16 port[2];	     /* local and foreign, or source and destination; 0: none */
	__u32 address[2][4]; /* as packets have them; zeros: none */
	char interface[16];
};
#define TG_EVENT_NAME 512u

/* What bpf/datapath/sockets.h tells of a socket. */
struct tg_labelled_socket {
	__u64 cookie; /* 0: nobody has asked for it, and it is in no key of `heard` */
	struct tg_socket label;
	__u32 namespace; /* the number of its network namespace's file */
	__u32 reserved;
	struct tg_endpoints ends;
};

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
	__u32 withheld; /* the policy allows what is denied, but enforcement depends on the object:
			   `security setenforce` is missing (TG_SID_SURVIVAL) */
	__u32 reserved;
	__u64 inode;
	char command[16];
	char filesystem[16];
	char name[TG_EVENT_NAME]; /* NUL-terminated; for a path its components from the last to the
				     first, each NUL-terminated; if it was cut, `.` last */
};

#endif
