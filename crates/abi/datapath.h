/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels in packets: which networks have them, how levels are written there, and what became of
 * packets. All of it but the counters is part of a generation, so a policy, the numbers of its
 * levels and the keys are switched at once. Numbers are in the kernel's byte order.
 */
#ifndef TOLLGATE_DATAPATH_H
#define TOLLGATE_DATAPATH_H

#include <linux/types.h>

#define TG_DOIS 16u
#define TG_ZONES 256u
#define TG_ZONE_RANGES 2048u
#define TG_DOI_SENSITIVITIES 256u
#define TG_DOI_CATEGORIES 1024u
#define TG_UNMAPPED 0xffffu

/* A domain of interpretation: how packets write levels. Sensitivities and categories are counted
 * from 0 here, as packets and SELinux's usual names do (s0, c0). */
struct tg_doi {
	__u32 number;	  /* 0: the end of the list */
	__u32 tag;	  /* of IPv4's CIPSO option (netlabel.h), where IPv6 has CALIPSO;
			     TG_TAG_SEALED: both have sealed labels */
	__u32 translated; /* 0: packets have the policy's own numbers */
	__u32 reserved;
	/* The packet's number for one of the policy's, and the other way round; TG_UNMAPPED: none.
	 */
	__u16 sensitivity_out[TG_DOI_SENSITIVITIES], sensitivity_in[TG_DOI_SENSITIVITIES];
	__u16 category_out[TG_DOI_CATEGORIES], category_in[TG_DOI_CATEGORIES];
};

/* Networks whose packets are treated alike. Packets from and to other networks are left alone. */
struct tg_zone {
	__u32 doi;	   /* 1 + its place in the list; 0: packets have no label */
	__u32 flags;	   /* TG_ZONE_... */
	__u32 unlabelled;  /* SID of packets that come without a label; 0: SECINITSID_UNLABELED */
	__u32 low, high;   /* with TG_ZONE_LIMITED: the levels between which labels must be */
	__u32 labels;	   /* contexts that its packets have brought; programs count them */
	__u32 connections; /* likewise contexts of connections that have begun from there */
};
#define TG_ZONE_REQUIRED 1u /* packets that come without a label are dropped */
#define TG_ZONE_LIMITED 2u

/* Contexts that packets may bring, from one zone and from all, in one generation and since the
 * machine started. More are refused: whoever sends labels must not use up the SIDs. */
#define TG_LABELS_OF_ZONE 256u
#define TG_LABELS_OF_PACKETS 1024u
/* Likewise of connections that are accepted: each listener's context, with each level. */
#define TG_CONNECTIONS_OF_ZONE 2048u
#define TG_CONNECTIONS_OF_PACKETS 8192u

/* Addresses from `first` up to that of the next range. The first range begins at address 0. */
struct tg_range4 {
	__u32 first; /* in the kernel's byte order */
	__u32 zone;  /* 1 + its place in the list; 0: none */
};
struct tg_range6 {
	__u64 first[2]; /* likewise; the more significant half first */
	__u32 zone, reserved;
};

/* Keys of sealed labels. A label is sealed with the first one, and opened with both. */
#define TG_SEAL_KEYS 2u
struct tg_seal {
	__u64 key[TG_SEAL_KEYS][2]; /* 16 bytes each, as words of the kernel's byte order */
	__u32 number[TG_SEAL_KEYS];
	__u32 keys;	 /* how many there are; 0: no label is sealed or opened */
	__u32 node;	 /* this machine's number in its cluster */
	__u32 tolerance; /* windows by which a label may be older or newer than the clock */
	__u32 reserved;
	__u64 generation; /* of the policy: the same on all machines that have it in force */
};

struct tg_datapath {
	__u32 zones;		/* 0: no packet has a label */
	__u32 ranges4, ranges6; /* how many there are, at least one each if there are zones */
	__u32 reserved;
	struct tg_seal seal;
	struct tg_doi doi[TG_DOIS];
	struct tg_zone zone[TG_ZONES];
	struct tg_range4 range4[TG_ZONE_RANGES]; /* sorted, as are those of IPv6 */
	struct tg_range6 range6[TG_ZONE_RANGES];
};

/* What became of a packet: the index in the map `packets`, which counts them. */
enum tg_fate {
	TG_PACKET_LABELLED, /* sent with a label */
	TG_PACKET_PLAIN,    /* sent without, because its destination's zone has none */
	TG_PACKET_LOCAL,    /* on the loopback device, or from another namespace of this machine: it
			       carries a mark */
	TG_PACKET_ACCEPTED, /* came with a label, which was taken off */
	TG_PACKET_UNLABELLED, /* came without */
	/* Dropped on the way out. */
	TG_DROPPED_NO_CONTEXT, /* the policy in force lacks the sender's context */
	TG_DROPPED_NO_LEVEL,   /* the sender's level cannot be written in the zone's domain */
	TG_DROPPED_NO_ROOM,    /* the header has no room for the label */
	TG_DROPPED_FORGED,     /* a process has set a label that is not its own */
	TG_DROPPED_EGRESS,     /* the policy denies it */
	/* Dropped on the way in. */
	TG_DROPPED_MALFORMED,  /* options, or the label */
	TG_DROPPED_DOI,	       /* not the domain of its zone */
	TG_DROPPED_STRIPPED,   /* it has no label, and its zone demands one */
	TG_DROPPED_RANGE,      /* the label is beyond what its zone may claim */
	TG_DROPPED_UNMAPPED,   /* the policy has no such level */
	TG_DROPPED_FULL,       /* there is no place for another label */
	TG_DROPPED_FRAGMENT,   /* fragments of a packet have different labels */
	TG_DROPPED_KEY,	       /* sealed by a key that is not valid */
	TG_DROPPED_WINDOW,     /* too old, or the clocks differ */
	TG_DROPPED_GENERATION, /* the sender has another policy in force */
	TG_DROPPED_SEAL,       /* forged, changed, or moved from another flow */
	TG_DROPPED_IDENTIFIER, /* the context behind the number is not known yet */
	/* Either way. */
	TG_DROPPED_MEMORY, /* the kernel could not make room, or read the packet */
	TG_FATES = 32,
};

#endif
