/* SPDX-License-Identifier: MIT */
/* Asks libselinux what each line says, and prints the answer: a test's other half.
 *
 *   av SOURCE TARGET CLASS: allowed, auditallow, auditdeny, flags
 *   create|member|relabel SOURCE TARGET CLASS [NAME]: a context
 *   validate OLD NEW CLASS TASK, check CONTEXT: 0
 *   has SOURCE TARGET CLASS PERMISSION: 0, by the cache
 *   cost SOURCE TARGET CLASS PERMISSION: nanoseconds of a cached check, the least of many
 *
 *   storm SOURCE TARGET CLASS PERMISSION FILE: checks until a policy is not changed any more, how
 * many there were while one policy was in force, and how many of these another decided file PATH
 * MODE: the context of a path, by the file_contexts that the argument names
 *
 *   seuser USER: the SELinux user; logins USER CONTEXT: the contexts; below the root that the
 * second argument names field FIELD VALUE CONTEXT: the context with another field; path: of
 * default_contexts
 *
 * What fails is `errno NUMBER`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <selinux/avc.h>
#include <selinux/context.h>
#include <selinux/get_context_list.h>
#include <selinux/label.h>
#include <selinux/selinux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define WORDS 6
#define ROUNDS 200
#define CHECKS 100000

static int fails(void)
{
	return printf("errno %d\n", errno);
}

static int av(char **word)
{
	struct av_decision out = {0};

	if (security_compute_av_flags(word[1], word[2], string_to_security_class(word[3]), 0, &out))
		return fails();
	return printf("%x %x %x %x\n", out.allowed, out.auditallow, out.auditdeny, out.flags);
}

static int label(char **word)
{
	security_class_t class = string_to_security_class(word[3]);
	char *out = NULL;
	int failed = !strcmp(word[0], "create")
			     ? security_compute_create_name(word[1], word[2], class, word[4], &out)
		     : !strcmp(word[0], "member")
			     ? security_compute_member(word[1], word[2], class, &out)
			     : security_compute_relabel(word[1], word[2], class, &out);

	if (failed)
		return fails();
	puts(out);
	freecon(out);
	return 0;
}

static int check(char **word)
{
	int failed = !strcmp(word[0], "check")
			     ? security_check_context(word[1])
			     : security_validatetrans(word[1], word[2],
						      string_to_security_class(word[3]), word[4]);

	return failed ? fails() : puts("0");
}

/* As managers do. */
static int has(char **word)
{
	security_id_t source, target;
	security_class_t class = string_to_security_class(word[3]);
	access_vector_t vector = string_to_av_perm(class, word[4]);

	if (!class || !vector)
		return security_deny_unknown() ? fails() : puts("0");
	if (avc_context_to_sid(word[1], &source) || avc_context_to_sid(word[2], &target))
		return fails();
	return avc_has_perm(source, target, class, vector, NULL, NULL) ? fails() : puts("0");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static int cost(char **word)
{
	security_class_t class = string_to_security_class(word[3]);
	access_vector_t vector = string_to_av_perm(class, word[4]);
	security_id_t source, target;
	struct avc_entry_ref reference;
	double least = 1e9;

	avc_entry_ref_init(&reference);
	if (avc_context_to_sid(word[1], &source) || avc_context_to_sid(word[2], &target))
		return fails();
	for (int round = 0; round < ROUNDS; round++) {
		double began = now(), taken;

		for (int i = 0; i < CHECKS; i++) {
			if (avc_has_perm_noaudit(source, target, class, vector, &reference, NULL))
				return fails();
		}
		taken = (now() - began) / CHECKS;
		least = taken < least ? taken : least;
	}
	return printf("%.2f\n", least);
}

/* What the test says of generations: the one that it puts in force, and the one that it has. An
 * even one allows. */
struct told {
	unsigned int begun, done, over;
};

static int storm(char **word)
{
	security_class_t class = string_to_security_class(word[3]);
	access_vector_t vector = string_to_av_perm(class, word[4]);
	int fd = open(word[5], O_RDONLY), asked = 0, wrong = 0;
	const volatile struct told *told = mmap(NULL, sizeof(*told), PROT_READ, MAP_SHARED, fd, 0);
	security_id_t source, target;

	if (told == MAP_FAILED || avc_context_to_sid(word[1], &source) ||
	    avc_context_to_sid(word[2], &target))
		return fails();
	while (!told->over) {
		unsigned int before = __atomic_load_n(&told->done, __ATOMIC_SEQ_CST);
		int allows = !avc_has_perm_noaudit(source, target, class, vector, NULL, NULL);

		if (__atomic_load_n(&told->begun, __ATOMIC_SEQ_CST) != before)
			continue;
		asked++;
		wrong += allows != !(before & 1);
	}
	return printf("%d %d\n", asked, wrong);
}

static struct selabel_handle *paths;

static int file(char **word)
{
	char *out;

	if (selabel_lookup(paths, &out, word[1], strtol(word[2], NULL, 8)))
		return fails();
	puts(out);
	freecon(out);
	return 0;
}

static int seuser(char **word)
{
	char *user, *level;

	if (getseuserbyname(word[1], &user, &level))
		return fails();
	puts(user);
	free(user);
	free(level);
	return 0;
}

static int logins(char **word)
{
	char **all;
	int count = get_ordered_context_list(word[1], word[2], &all);

	if (count < 0)
		return fails();
	for (int i = 0; i < count; i++)
		printf("%s%s", all[i], i + 1 < count ? " " : "\n");
	freeconary(all);
	return 0;
}

static int field(char **word)
{
	context_t context = context_new(word[3] ? word[3] : "");
	int failed;

	if (!context)
		return puts("no context");
	failed = !strcmp(word[1], "user")   ? context_user_set(context, word[2])
		 : !strcmp(word[1], "role") ? context_role_set(context, word[2])
		 : !strcmp(word[1], "type") ? context_type_set(context, word[2])
					    : context_range_set(context, word[2]);
	printf("%s %s\n", failed ? "refused" : "set", context_str(context));
	context_free(context);
	return 0;
}

static int path(char **word)
{
	(void)word;
	return puts(selinux_default_context_path());
}

static int answer(char **word)
{
	static const struct {
		const char *name;
		int (*does)(char **word);
	} known[] = {{"av", av},       {"create", label},   {"member", label},	{"relabel", label},
		     {"check", check}, {"validate", check}, {"has", has},	{"cost", cost},
		     {"file", file},   {"seuser", seuser},  {"logins", logins}, {"field", field},
		     {"path", path},   {"storm", storm}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(known[i].name, word[0]))
			return known[i].does(word);
	}
	return printf("unknown\n");
}

int main(int argc, char **argv)
{
	struct selinux_opt option = {SELABEL_OPT_PATH, argv[1]};
	char line[65536];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("enabled %d enforcing %d\n", is_selinux_enabled(), security_getenforce());
	if (argc > 2)
		selinux_set_policy_root(argv[2]);
	if (argc > 1)
		paths = selabel_open(SELABEL_CTX_FILE, &option, 1);
	else if (avc_open(NULL, 0))
		return fails(), 1;
	while (fgets(line, sizeof(line), stdin)) {
		char *word[WORDS] = {0}, *rest = line;

		for (int i = 0; i < WORDS; i++)
			word[i] = strsep(&rest, " \n");
		for (int i = 0; i < WORDS; i++)
			word[i] = word[i] && *word[i] ? word[i] : NULL;
		answer(word);
	}
	return 0;
}
