// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks the evaluator questions of decision tables (argv[1]) that are damaged at random, for argv[2]
 * seconds. It is compiled with the address and undefined behaviour sanitizers, which end it at the
 * first access outside; tables and levels are allocations of their own, so that there is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decide.h"

#define CHANGES 8

struct change {
	__u32 at, old;
};

static __u64 state = 88172645463325252ull;

static __u32 below(__u32 end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (__u32)(state >> 32) % end;
}

static __u32 any(void)
{
	switch (below(4)) {
	case 0:
		return below(TG_LEVELS);
	case 1:
		return 1u << below(32);
	case 2:
		return ~0u - below(64);
	default:
		return below(16);
	}
}

static struct tg_context context(void)
{
	return (struct tg_context){
		.user = (__u16)any(),
		.role = (__u16)any(),
		.type = any(),
		.low = any(),
		.high = any(),
	};
}

static void ask(const struct tg_tables *tables, const struct tg_levels *levels)
{
	struct tg_question question = {
		.source = context(),
		.target = context(),
		.task = context(),
		.class = below(4) ? 1 + below(4) : any(),
		.ask = below(3),
	};
	struct tg_name name = {.length = below(4) ? 6 : any()};
	struct tg_decision decision;
	struct tg_extended extended;
	struct tg_label label;

	memcpy(name.text, "a name", 6);
	if (tg_decide(tables, levels, &question, &decision))
		tg_extend(tables, &decision, below(256), &extended);
	decision.extended = any();
	tg_extend(tables, &decision, any(), &extended);
	tg_validate(tables, levels, &question);
	tg_compute_label(tables, levels, &question, below(2) ? &name : NULL, &label);
	tg_valid(tables, levels, &question.source, tg_level(levels, question.source.low),
		 tg_level(levels, question.source.high));
}

int main(int argc, char **argv)
{
	struct tg_tables *tables = calloc(1, sizeof(*tables));
	struct tg_levels *levels = calloc(1, sizeof(*levels));
	FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
	unsigned long long count = 0;
	size_t size;

	if (!file || !tables || !levels)
		return 2;
	size = fread(tables->bytes, 1, sizeof(tables->bytes), file);
	fclose(file);
	if (size < sizeof(struct tg_header))
		return 2;
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end; count++) {
		struct change changes[CHANGES];
		__u32 made = 1 + below(CHANGES);

		for (__u32 i = 0; i < made; i++) {
			__u32 limit = below(2) ? sizeof(struct tg_header) : (__u32)size;
			__u32 at = below(limit) & ~3u, new = any();

			changes[i].at = at;
			memcpy(&changes[i].old, tables->bytes + at, sizeof(new));
			memcpy(tables->bytes + at, &new, sizeof(new));
		}
		for (int i = 0; i < 16; i++)
			ask(tables, levels);
		while (made--)
			memcpy(tables->bytes + changes[made].at, &changes[made].old,
			       sizeof(changes[made].old));
	}
	printf("%llu damaged tables\n", count);
	free(levels);
	free(tables);
	return !count;
}
