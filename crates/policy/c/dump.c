// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes a policydb as a stream: numbers of 4 bytes, little endian; text as its length and its
 * bytes; sets as a count of words and words of 8 bytes. Identifiers are libsepol's values, so
 * sets of users, roles and types are shifted by one against libsepol's bit maps. Categories
 * start at 0.
 */
#include <endian.h>
#include <string.h>

#include <sepol/policydb/avtab.h>
#include <sepol/policydb/conditional.h>
#include <sepol/policydb/constraint.h>
#include <sepol/policydb/ebitmap.h>
#include <sepol/policydb/hashtab.h>
#include <sepol/policydb/polcaps.h>

#include "dump.h"

#define MAGIC 0x444d4754u /* "TGMD" */
#define VERSION 1u

static char error[256];

const char *tollgate_dump_error(void)
{
	return error;
}

#define REFUSE(...) (snprintf(error, sizeof(error), __VA_ARGS__), -1)

static void number(FILE *out, uint32_t value)
{
	value = htole32(value);
	fwrite(&value, sizeof(value), 1, out);
}

static void text(FILE *out, const char *value)
{
	uint32_t length = value ? strlen(value) : 0;

	number(out, length);
	fwrite(value, 1, length, out);
}

/* Writes a set in which bit n becomes n + shift. */
static void set(FILE *out, const ebitmap_t *bits, unsigned shift)
{
	ebitmap_node_t *node;
	unsigned bit, words = 0, at = 0;
	uint64_t word = 0;

	ebitmap_for_each_positive_bit(bits, node, bit) words = (bit + shift) / 64 + 1;
	number(out, words);
	ebitmap_for_each_positive_bit(bits, node, bit)
	{
		for (; at < (bit + shift) / 64; at++) {
			word = htole64(word);
			fwrite(&word, sizeof(word), 1, out);
			word = 0;
		}
		word |= 1ull << (bit + shift) % 64;
	}
	if (words) {
		word = htole64(word);
		fwrite(&word, sizeof(word), 1, out);
	}
}

static void level(FILE *out, const mls_level_t *value)
{
	number(out, value->sens);
	set(out, &value->cat, 0);
}

static void range(FILE *out, const mls_range_t *value)
{
	level(out, &value->level[0]);
	level(out, &value->level[1]);
}

static void context(FILE *out, const context_struct_t *value)
{
	number(out, value->user);
	number(out, value->role);
	number(out, value->type);
	range(out, &value->range);
}

static void capabilities(FILE *out, policydb_t *p)
{
	ebitmap_node_t *node;
	unsigned bit, count = 0;

	ebitmap_for_each_positive_bit(&p->policycaps, node, bit) count++;
	number(out, count);
	ebitmap_for_each_positive_bit(&p->policycaps, node, bit)
	{
		const char *name = sepol_polcap_getname(bit);
		char unknown[32];

		snprintf(unknown, sizeof(unknown), "#%u", bit);
		text(out, name ? name : unknown);
	}
}

static int permission(hashtab_key_t key, hashtab_datum_t datum, void *names)
{
	uint32_t value = ((perm_datum_t *)datum)->s.value;

	if (!value || value > 32)
		return REFUSE("permission %s has the number %u of at most 32", key, value);
	((const char **)names)[value - 1] = key;
	return 0;
}

/* The types and attributes of a constraint's term as they were written. A term with * or ~ or
 * exceptions, which only checkpolicy writes, is not a plain set. It is written as not known. */
static const ebitmap_t *written(const constraint_expr_t *term)
{
	static const ebitmap_t none;
	const type_set_t *set = term->type_names;

	if (!(term->attr & CEXPR_TYPE) || !set || set->flags || !ebitmap_is_empty(&set->negset))
		return &none;
	return &set->types;
}

static int expression(FILE *out, const constraint_expr_t *first)
{
	uint32_t count = 0;

	for (const constraint_expr_t *term = first; term; term = term->next)
		count++;
	number(out, count);
	for (const constraint_expr_t *term = first; term; term = term->next) {
		number(out, term->expr_type);
		number(out, term->attr);
		number(out, term->op);
		if (term->expr_type != CEXPR_NAMES)
			continue;
		set(out, &term->names, 1);
		set(out, written(term), 1);
	}
	return 0;
}

static void constraints(FILE *out, const constraint_node_t *first)
{
	uint32_t count = 0;

	for (const constraint_node_t *node = first; node; node = node->next)
		count++;
	number(out, count);
	for (const constraint_node_t *node = first; node; node = node->next) {
		number(out, node->permissions);
		expression(out, node->expr);
	}
}

static int classes(FILE *out, policydb_t *p)
{
	number(out, p->p_classes.nprim);
	for (uint32_t i = 0; i < p->p_classes.nprim; i++) {
		class_datum_t *class = p->class_val_to_struct[i];
		const char *names[32] = {NULL};
		uint32_t count = 0;

		text(out, class ? p->p_class_val_to_name[i] : NULL);
		if (!class) {
			for (int empty = 0; empty < 7; empty++)
				number(out, 0);
			continue;
		}
		if (class->comdatum &&
		    hashtab_map(class->comdatum->permissions.table, permission, names))
			return -1;
		if (hashtab_map(class->permissions.table, permission, names))
			return -1;
		for (uint32_t bit = 0; bit < 32; bit++)
			count = names[bit] ? bit + 1 : count;
		number(out, count);
		for (uint32_t bit = 0; bit < count; bit++)
			text(out, names[bit]);
		number(out, class->default_user);
		number(out, class->default_role);
		number(out, class->default_type);
		number(out, class->default_range);
		constraints(out, class->constraints);
		constraints(out, class->validatetrans);
	}
	return 0;
}

struct aliases {
	FILE *out; /* NULL: count only */
	uint32_t count;
	uint32_t of; /* the level or category whose aliases are wanted */
};

static int type_alias(hashtab_key_t key, hashtab_datum_t datum, void *argument)
{
	type_datum_t *type = datum;
	struct aliases *aliases = argument;

	if (type->flavor != TYPE_TYPE || type->primary)
		return 0;
	aliases->count++;
	if (aliases->out) {
		text(aliases->out, key);
		number(aliases->out, type->s.value);
	}
	return 0;
}

static int level_alias(hashtab_key_t key, hashtab_datum_t datum, void *argument)
{
	level_datum_t *value = datum;
	struct aliases *aliases = argument;

	if (!value->isalias || value->level->sens != aliases->of)
		return 0;
	aliases->count++;
	if (aliases->out)
		text(aliases->out, key);
	return 0;
}

static int category_alias(hashtab_key_t key, hashtab_datum_t datum, void *argument)
{
	cat_datum_t *value = datum;
	struct aliases *aliases = argument;

	if (!value->isalias || value->s.value != aliases->of)
		return 0;
	aliases->count++;
	if (aliases->out)
		text(aliases->out, key);
	return 0;
}

/* Writes how many entries `map` finds in `table`, and then these. */
static void listed(FILE *out, hashtab_t table, int (*map)(hashtab_key_t, hashtab_datum_t, void *),
		   uint32_t of)
{
	struct aliases aliases = {.of = of};

	hashtab_map(table, map, &aliases);
	number(out, aliases.count);
	aliases.out = out;
	hashtab_map(table, map, &aliases);
}

static void types(FILE *out, policydb_t *p)
{
	static const ebitmap_t none;

	number(out, p->p_types.nprim);
	for (uint32_t i = 0; i < p->p_types.nprim; i++) {
		type_datum_t *type = p->type_val_to_struct[i];
		uint32_t attribute = type && type->flavor == TYPE_ATTRIB;
		uint32_t permissive = type && ebitmap_get_bit(&p->permissive_map, i + 1);

		text(out, type ? p->p_type_val_to_name[i] : NULL);
		number(out, attribute | permissive << 1);
		number(out, type ? type->bounds : 0);
		/* policydb_read puts the numbers of gaps in their sets as well. */
		set(out, type ? &p->type_attr_map[i] : &none, 1);
	}
	listed(out, p->p_types.table, type_alias, 0);
}

static void roles_and_users(FILE *out, policydb_t *p)
{
	static const ebitmap_t none;
	static const mls_range_t no_range;

	number(out, p->p_roles.nprim);
	for (uint32_t i = 0; i < p->p_roles.nprim; i++) {
		role_datum_t *role = p->role_val_to_struct[i];

		text(out, role ? p->p_role_val_to_name[i] : NULL);
		set(out, role ? &role->types.types : &none, 1);
		set(out, role ? &role->dominates : &none, 1);
	}
	number(out, p->p_users.nprim);
	for (uint32_t i = 0; i < p->p_users.nprim; i++) {
		user_datum_t *user = p->user_val_to_struct[i];

		text(out, user ? p->p_user_val_to_name[i] : NULL);
		set(out, user ? &user->roles.roles : &none, 1);
		range(out, user ? &user->exp_range : &no_range);
		level(out, user ? &user->exp_dfltlevel : &no_range.level[0]);
	}
}

static int levels(FILE *out, policydb_t *p)
{
	number(out, p->p_levels.nprim);
	for (uint32_t i = 0; i < p->p_levels.nprim; i++) {
		char *name = p->p_sens_val_to_name[i];
		level_datum_t *value = name ? hashtab_search(p->p_levels.table, name) : NULL;

		if (!value)
			return REFUSE("sensitivity %u has no name", i + 1);
		text(out, name);
		listed(out, p->p_levels.table, level_alias, i + 1);
		set(out, &value->level->cat, 0);
	}
	number(out, p->p_cats.nprim);
	for (uint32_t i = 0; i < p->p_cats.nprim; i++) {
		text(out, p->p_cat_val_to_name[i]);
		listed(out, p->p_cats.table, category_alias, i + 1);
	}
	return 0;
}

static void booleans(FILE *out, policydb_t *p)
{
	uint32_t count = 0;

	number(out, p->p_bools.nprim);
	for (uint32_t i = 0; i < p->p_bools.nprim; i++) {
		text(out, p->p_bool_val_to_name[i]);
		number(out, p->bool_val_to_struct[i] && p->bool_val_to_struct[i]->state);
	}
	for (cond_list_t *node = p->cond_list; node; node = node->next)
		count++;
	number(out, count);
	for (cond_list_t *node = p->cond_list; node; node = node->next) {
		count = 0;
		for (cond_expr_t *term = node->expr; term; term = term->next)
			count++;
		number(out, count);
		for (cond_expr_t *term = node->expr; term; term = term->next) {
			number(out, term->expr_type);
			number(out, term->bool);
		}
	}
}

/* The argument of avtab_map. Rules and extended rules are two passes over the same tables. */
struct rules {
	FILE *out; /* NULL: count only */
	uint32_t count;
	uint32_t condition; /* 0: none; else 1 + 2 * its number + the value it must have */
	int extended;
};

static int rule(avtab_key_t *key, avtab_datum_t *datum, void *argument)
{
	struct rules *rules = argument;
	uint32_t kind = key->specified & ~AVTAB_ENABLED;
	int extended = !!(kind & AVTAB_XPERMS);

	if (!extended && !(kind & (AVTAB_AV | AVTAB_TYPE)))
		return REFUSE("a rule of kind %#x, which is not known", kind);
	if (extended && datum->xperms->specified != AVTAB_XPERMS_IOCTLFUNCTION &&
	    datum->xperms->specified != AVTAB_XPERMS_IOCTLDRIVER)
		return REFUSE("extended permissions of kind %u, which is not known",
			      datum->xperms->specified);
	if (extended != rules->extended)
		return 0;
	rules->count++;
	if (!rules->out)
		return 0;
	number(rules->out, kind);
	number(rules->out, key->source_type);
	number(rules->out, key->target_type);
	number(rules->out, key->target_class);
	number(rules->out, rules->condition);
	if (!extended) {
		number(rules->out, kind == AVTAB_AUDITDENY ? ~datum->data : datum->data);
		return 0;
	}
	number(rules->out, datum->xperms->specified | (uint32_t)datum->xperms->driver << 8);
	for (int i = 0; i < 8; i++)
		number(rules->out, datum->xperms->perms[i]);
	return 0;
}

static int rules_of(policydb_t *p, struct rules *rules)
{
	uint32_t condition = 0;

	rules->condition = 0;
	if (avtab_map(&p->te_avtab, rule, rules))
		return -1;
	for (cond_list_t *node = p->cond_list; node; node = node->next, condition++) {
		for (uint32_t value = 0; value < 2; value++) {
			cond_av_list_t *list = value ? node->true_list : node->false_list;

			rules->condition = 1 + 2 * condition + value;
			for (; list; list = list->next)
				if (rule(&list->node->key, &list->node->datum, rules))
					return -1;
		}
	}
	return 0;
}

static int rules(FILE *out, policydb_t *p, int extended)
{
	struct rules rules = {.extended = extended};

	if (rules_of(p, &rules))
		return -1;
	number(out, rules.count);
	rules.out = out;
	return rules_of(p, &rules);
}

static int name_transition(hashtab_key_t key, hashtab_datum_t datum, void *argument)
{
	const filename_trans_key_t *of = (const void *)key;
	struct aliases *found = argument;

	for (filename_trans_datum_t *each = datum; each; each = each->next) {
		found->count++;
		if (!found->out)
			continue;
		set(found->out, &each->stypes, 1);
		number(found->out, of->ttype);
		number(found->out, of->tclass);
		number(found->out, each->otype);
		text(found->out, of->name);
	}
	return 0;
}

static int range_transition(hashtab_key_t key, hashtab_datum_t datum, void *argument)
{
	const range_trans_t *of = (const void *)key;
	struct aliases *found = argument;

	found->count++;
	if (found->out) {
		number(found->out, of->source_type);
		number(found->out, of->target_type);
		number(found->out, of->target_class);
		range(found->out, datum);
	}
	return 0;
}

static void transitions(FILE *out, policydb_t *p)
{
	uint32_t count = 0;

	listed(out, p->filename_trans, name_transition, 0);
	for (role_trans_t *each = p->role_tr; each; each = each->next)
		count++;
	number(out, count);
	for (role_trans_t *each = p->role_tr; each; each = each->next) {
		number(out, each->role);
		number(out, each->type);
		number(out, each->tclass);
		number(out, each->new_role);
	}
	count = 0;
	for (role_allow_t *each = p->role_allow; each; each = each->next)
		count++;
	number(out, count);
	for (role_allow_t *each = p->role_allow; each; each = each->next) {
		number(out, each->role);
		number(out, each->new_role);
	}
	listed(out, p->range_tr, range_transition, 0);
}

static uint32_t length(const ocontext_t *first)
{
	uint32_t count = 0;

	for (; first; first = first->next)
		count++;
	return count;
}

static void nodes(FILE *out, policydb_t *p)
{
	number(out, length(p->ocontexts[OCON_NODE]) + length(p->ocontexts[OCON_NODE6]));
	for (ocontext_t *each = p->ocontexts[OCON_NODE]; each; each = each->next) {
		number(out, 4);
		fwrite(&each->u.node.addr, 4, 1, out);
		fwrite(&each->u.node.mask, 4, 1, out);
		context(out, &each->context[0]);
	}
	for (ocontext_t *each = p->ocontexts[OCON_NODE6]; each; each = each->next) {
		number(out, 16);
		fwrite(each->u.node6.addr, 16, 1, out);
		fwrite(each->u.node6.mask, 16, 1, out);
		context(out, &each->context[0]);
	}
}

static void contexts(FILE *out, policydb_t *p)
{
	uint32_t count = 0;

	number(out, length(p->ocontexts[OCON_ISID]));
	for (ocontext_t *each = p->ocontexts[OCON_ISID]; each; each = each->next) {
		number(out, each->sid[0]);
		context(out, &each->context[0]);
	}
	number(out, length(p->ocontexts[OCON_FSUSE]));
	for (ocontext_t *each = p->ocontexts[OCON_FSUSE]; each; each = each->next) {
		number(out, each->v.behavior);
		text(out, each->u.name);
		context(out, &each->context[0]);
	}
	for (genfs_t *each = p->genfs; each; each = each->next)
		count += length(each->head);
	number(out, count);
	for (genfs_t *each = p->genfs; each; each = each->next) {
		for (ocontext_t *path = each->head; path; path = path->next) {
			text(out, each->fstype);
			text(out, path->u.name);
			number(out, path->v.sclass);
			context(out, &path->context[0]);
		}
	}
	number(out, length(p->ocontexts[OCON_PORT]));
	for (ocontext_t *each = p->ocontexts[OCON_PORT]; each; each = each->next) {
		number(out, each->u.port.protocol);
		number(out, each->u.port.low_port);
		number(out, each->u.port.high_port);
		context(out, &each->context[0]);
	}
	number(out, length(p->ocontexts[OCON_NETIF]));
	for (ocontext_t *each = p->ocontexts[OCON_NETIF]; each; each = each->next) {
		text(out, each->u.name);
		context(out, &each->context[0]);
		context(out, &each->context[1]);
	}
	nodes(out, p);
	number(out, length(p->ocontexts[OCON_IBPKEY]) + length(p->ocontexts[OCON_IBENDPORT]));
}

int tollgate_dump(policydb_t *p, FILE *out)
{
	if (p->policy_type != POLICY_KERN)
		return REFUSE("a module, not a whole policy");
	if (p->target_platform != SEPOL_TARGET_SELINUX)
		return REFUSE("a policy for Xen, not for Linux");
	number(out, MAGIC);
	number(out, VERSION);
	number(out, p->policyvers);
	number(out, !!p->mls);
	number(out, p->handle_unknown);
	capabilities(out, p);
	number(out, p->p_classes.nprim);
	number(out, p->p_types.nprim);
	number(out, p->p_roles.nprim);
	number(out, p->p_users.nprim);
	number(out, p->p_levels.nprim);
	number(out, p->p_cats.nprim);
	number(out, p->p_bools.nprim);
	if (classes(out, p))
		return -1;
	types(out, p);
	roles_and_users(out, p);
	if (levels(out, p))
		return -1;
	booleans(out, p);
	if (rules(out, p, 0) || rules(out, p, 1))
		return -1;
	transitions(out, p);
	contexts(out, p);
	return ferror(out) ? REFUSE("the policy could not be written: no space or no reader") : 0;
}
