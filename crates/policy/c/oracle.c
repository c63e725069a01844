// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libsepol's own evaluator. It has one policy and one SID table, in global variables.
 * crates/policy/src/oracle.rs lets only one caller use it at a time.
 */
#include <stdlib.h>

#include <sepol/debug.h>
#include <sepol/policydb/policydb.h>
#include <sepol/policydb/services.h>
#include <sepol/policydb/sidtab.h>

struct oracle {
	policydb_t policy;
	sidtab_t sids;
};

struct oracle *tollgate_oracle_load(char *image, size_t length);
void tollgate_oracle_free(struct oracle *oracle);
int tollgate_oracle_has(const struct oracle *oracle, uint32_t class);

/* Puts the policy of `image` in force. Returns NULL if it cannot be read. */
struct oracle *tollgate_oracle_load(char *image, size_t length)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	struct policy_file file;

	if (!oracle)
		return NULL;
	sepol_debug(0);
	policy_file_init(&file);
	file.type = PF_USE_MEMORY;
	file.data = image;
	file.len = length;
	file.size = length;
	if (policydb_init(&oracle->policy))
		goto failed;
	/* On failure policydb_read leaves it to its caller to free what was read, as in
	 * policydb_from_image. */
	if (policydb_read(&oracle->policy, &file, 0) ||
	    policydb_load_isids(&oracle->policy, &oracle->sids)) {
		policydb_destroy(&oracle->policy);
		goto failed;
	}
	sepol_set_policydb(&oracle->policy);
	sepol_set_sidtab(&oracle->sids);
	return oracle;
failed:
	free(oracle);
	return NULL;
}

void tollgate_oracle_free(struct oracle *oracle)
{
	sepol_sidtab_destroy(&oracle->sids);
	policydb_destroy(&oracle->policy);
	free(oracle);
}

/* Whether the policy has this class. libsepol's evaluator follows a null pointer where the
 * numbers of classes have a gap (context_struct_compute_av, sepol_validate_transition). */
int tollgate_oracle_has(const struct oracle *oracle, uint32_t class)
{
	const policydb_t *policy = &oracle->policy;

	return class && class <= policy->p_classes.nprim && class <= UINT16_MAX &&
	       policy->class_val_to_struct[class - 1];
}
