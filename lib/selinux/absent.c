/* SPDX-License-Identifier: MIT */
/* What libselinux has and Tollgate does not do. Each name is exported, so that programs load; each
 * call fails with ENOTSUP. README.md says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <selinux/avc.h>
#include <selinux/get_context_list.h>
#include <selinux/get_default_type.h>
#include <selinux/label.h>
#include <selinux/restorecon.h>
#include <selinux/selinux.h>

/* The callers' arguments are of no interest, and a result is in the same register whatever its
 * width. */
#pragma GCC diagnostic ignored "-Wattribute-alias"

long absent_number(void);
long absent_number(void)
{
	errno = ENOTSUP;
	return -1;
}

/* NULL, false or 0. */
long absent_value(void);
long absent_value(void)
{
	errno = ENOTSUP;
	return 0;
}

#define NUMBER(name) extern __typeof__(name) name __attribute__((alias("absent_number")))
#define VALUE(name) extern __typeof__(name) name __attribute__((alias("absent_value")))

/* A policy is put in force by the daemon: tollgate policy, tollgate reload. */
NUMBER(security_load_policy);
NUMBER(selinux_mkload_policy);
NUMBER(security_disable);
NUMBER(security_set_boolean);
NUMBER(security_set_boolean_list);
NUMBER(security_commit_booleans);
NUMBER(security_load_booleans);

/* The kernel does not offer it any more, and libselinux does not use it. */
NUMBER(security_compute_user);
NUMBER(security_compute_user_raw);

/* Digests of file contexts in attributes: the daemon keeps what is labelled. */
NUMBER(selabel_digest);
VALUE(selabel_get_digests_all_partial_matches);
VALUE(selabel_hash_all_partial_matches);
NUMBER(selinux_restorecon_xattr);

/* Labels that every file should have are restored by the daemon: tollgate label restore. */
NUMBER(selinux_restorecon);
NUMBER(selinux_restorecon_parallel);
NUMBER(selinux_restorecon_set_alt_rootpath);
VALUE(selinux_restorecon_default_handle);
VALUE(selinux_restorecon_get_skipped_errors);
VALUE(selinux_restorecon_set_exclude_list);
VALUE(selinux_restorecon_set_sehandle);

/* Tables of what setfiles has seen. */
NUMBER(matchpathcon_filespec_add);
VALUE(matchpathcon_filespec_destroy);
VALUE(matchpathcon_filespec_eval);
VALUE(matchpathcon_checkmatches);

/* A person at a terminal is asked. */
NUMBER(manual_user_enter_context);
NUMBER(query_user_context);

/* Files that the policies for Tollgate do not have. */
NUMBER(matchmediacon);
NUMBER(selinux_check_securetty_context);
NUMBER(selinux_raw_context_to_color);

/* Statistics of another cache, in messages. */
VALUE(avc_av_stats);
VALUE(avc_sid_stats);

/* There is no selinuxfs. */
char *selinux_mnt;
VALUE(selinuxfs_exists);
VALUE(set_selinuxmnt);
VALUE(fini_selinuxmnt);
VALUE(selinux_current_policy_path);
