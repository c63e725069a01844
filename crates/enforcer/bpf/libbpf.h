/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What libbpf provides to programs, in the order in which its headers need one another. */
#ifndef TOLLGATE_LIBBPF_H
#define TOLLGATE_LIBBPF_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#endif
