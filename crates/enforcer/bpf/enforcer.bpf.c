// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The object managers: one BPF program for each LSM hook that SELinux asks a question at. */
#include "attribute.h"
#include "binder.h"
#include "capability.h"
#include "creation.h"
#include "directory.h"
#include "exec.h"
#include "file.h"
#include "inquiry.h"
#include "ipc.h"
#include "key.h"
#include "mapping.h"
#include "owner.h"
#include "perf.h"
#include "process.h"
#include "relabel.h"
#include "superblock.h"
#include "system.h"
#include "uring.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
