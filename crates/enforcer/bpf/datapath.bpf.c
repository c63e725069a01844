/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels in packets. An object file of its own, because its programs are attached to network
 * devices and not to hooks; it uses the maps of enforcer.bpf.c.
 */
#include "datapath/counters.h"
#include "datapath/programs.h"
#include "datapath/sockets.h"
#include "libbpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
