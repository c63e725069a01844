// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The guard: what privileged programs may call (docs/adr/0023). */
#include "libbpf.h"
#include "guard/exec.h"
#include "guard/files.h"
#include "guard/identity.h"
#include "guard/switch.h"
#include "guard/system.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
