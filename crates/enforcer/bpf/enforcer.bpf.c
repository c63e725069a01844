// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All programs, in one object file: those of the LSM hooks at which SELinux checks something,
 * and those that the daemon runs. Each header of programs/ has the programs of one object
 * manager.
 */
#include "libbpf.h"
#include "programs/attribute.h"
#include "programs/binder.h"
#include "programs/bpf.h"
#include "programs/capability.h"
#include "programs/creation.h"
#include "programs/credential.h"
#include "programs/directory.h"
#include "programs/exec.h"
#include "programs/file.h"
#include "programs/file_owner.h"
#include "programs/filesystem.h"
#include "programs/inode.h"
#include "programs/inquiry.h"
#include "programs/io_uring.h"
#include "programs/ipc.h"
#include "programs/key.h"
#include "programs/label.h"
#include "programs/lineage.h"
#include "programs/mapping.h"
#include "programs/message.h"
#include "programs/netlink.h"
#include "programs/network.h"
#include "programs/packet.h"
#include "programs/peer.h"
#include "programs/perf.h"
#include "programs/process.h"
#include "programs/revocation.h"
#include "programs/socket.h"
#include "programs/system.h"
#include "programs/tun.h"
#include "programs/unix.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
