/* SPDX-License-Identifier: MIT */
#ifndef TOLLGATE_SELINUX_AVC_H
#define TOLLGATE_SELINUX_AVC_H

/* Whether checks look for changes of mode and policy: not while the program's main loop does. */
void avc_follow_by_itself(int itself);

#endif
