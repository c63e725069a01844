/* SPDX-License-Identifier: MIT */
/* No names of levels are translated (mcstrans): a context and its raw form are the same. */
#ifndef TOLLGATE_SELINUX_ALIAS_H
#define TOLLGATE_SELINUX_ALIAS_H

/* Exports NAME_raw as NAME, too, with the type that the header gives to it. */
#define SAME(name) extern __typeof__(name##_raw) name __attribute__((alias(#name "_raw")))

#endif
