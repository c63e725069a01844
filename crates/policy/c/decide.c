// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The host's copy of the evaluator. */
#include "decide.h"

int tollgate_decide(const struct tg_tables *tables, const struct tg_levels *levels,
		    const struct tg_question *question, struct tg_decision *out);
int tollgate_extend(const struct tg_tables *tables, const struct tg_decision *decision,
		    __u32 driver, struct tg_extended *out);
int tollgate_validate(const struct tg_tables *tables, const struct tg_levels *levels,
		      const struct tg_question *question);
int tollgate_valid(const struct tg_tables *tables, const struct tg_levels *levels,
		   const struct tg_context *context);
int tollgate_label(const struct tg_tables *tables, const struct tg_levels *levels,
		   const struct tg_question *question, const struct tg_name *name,
		   struct tg_label *out);

int tollgate_decide(const struct tg_tables *tables, const struct tg_levels *levels,
		    const struct tg_question *question, struct tg_decision *out)
{
	struct tg_question asked = *question;

	return tg_decide(tables, levels, &asked, out);
}

int tollgate_extend(const struct tg_tables *tables, const struct tg_decision *decision,
		    __u32 driver, struct tg_extended *out)
{
	return tg_extend(tables, decision, driver, out);
}

int tollgate_validate(const struct tg_tables *tables, const struct tg_levels *levels,
		      const struct tg_question *question)
{
	return tg_validate(tables, levels, question);
}

int tollgate_valid(const struct tg_tables *tables, const struct tg_levels *levels,
		   const struct tg_context *context)
{
	return tg_valid(tables, levels, context, tg_level(levels, context->low),
			tg_level(levels, context->high));
}

int tollgate_label(const struct tg_tables *tables, const struct tg_levels *levels,
		   const struct tg_question *question, const struct tg_name *name,
		   struct tg_label *out)
{
	return tg_compute_label(tables, levels, question, name, out);
}
