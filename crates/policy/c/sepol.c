// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sepol.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sepol/cil/cil.h>
#include <sepol/module.h>
#include <sepol/module_to_cil.h>
#include <sepol/policydb.h>
#include <sepol/policydb/conditional.h>
#include <sepol/policydb/policydb.h>
#include <sepol/sepol.h>

#include "dump.h"

/* The parent shows at most this much of libsepol's messages. */
#define MESSAGES (64u << 10)

#define MODULE_PACKAGE_MAGIC 0xf97cff8fu

static char *messages;
static size_t messages_length;

static int write_all(int out, const void *content, size_t length)
{
	const char *at = content;

	while (length) {
		ssize_t written = write(out, at, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		at += written;
		length -= written;
	}
	return 0;
}

int tollgate_section(int out, enum tollgate_tag tag, const void *content, size_t length)
{
	unsigned char head[9] = {tag};
	uint64_t little = htole64(length);

	memcpy(head + 1, &little, sizeof(little));
	if (write_all(out, head, sizeof(head)))
		return -1;
	return write_all(out, content, length);
}

/* libsepol and its CIL compiler write messages to stderr, some of them by handlers that cannot
 * be replaced without private headers. glibc's stderr can be replaced. */
static int listen(void)
{
	FILE *log = open_memstream(&messages, &messages_length);

	if (!log)
		return -1;
	stdout = log;
	stderr = log;
	return 0;
}

/* Sends libsepol's messages, and the end. `result` is the result of the call. */
static int finish(int out, int result)
{
	size_t length;

	fflush(stderr);
	length = messages_length < MESSAGES ? messages_length : MESSAGES;
	if (tollgate_section(out, TOLLGATE_MESSAGES, messages, length) ||
	    tollgate_section(out, TOLLGATE_END, NULL, 0))
		return -1;
	return result;
}

/* struct sepol_policydb contains a struct policydb and nothing else (policydb_internal.h). */
static policydb_t *inside(sepol_policydb_t *policydb)
{
	return (policydb_t *)policydb;
}

static int send_model(policydb_t *policydb, int out)
{
	char *model = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&model, &length);
	int result;

	if (!stream)
		return -1;
	result = tollgate_dump(policydb, stream);
	if (result)
		fprintf(stderr, "%s\n", tollgate_dump_error());
	if (fclose(stream))
		result = -1;
	if (!result)
		result = tollgate_section(out, TOLLGATE_MODEL, model, length);
	free(model);
	return result;
}

static int read_image(const char *image, size_t length, int out)
{
	sepol_policydb_t *policydb = NULL;
	int result = -1;

	if (sepol_policydb_create(&policydb))
		return -1;
	if (sepol_policydb_from_image(NULL, (void *)image, length, policydb))
		goto exit;
	if (inside(policydb)->policy_type != POLICY_KERN ||
	    inside(policydb)->target_platform != SEPOL_TARGET_SELINUX) {
		fprintf(stderr, "it is not a policy for a kernel's SELinux\n");
		goto exit;
	}
	result = send_model(inside(policydb), out);
exit:
	sepol_policydb_free(policydb);
	return result;
}

/* Reads an image and writes it again. */
static int rewrite(void **image, size_t *length)
{
	sepol_policydb_t *policydb = NULL;
	void *again = NULL;
	int result = -1;

	if (sepol_policydb_create(&policydb))
		return -1;
	if (!sepol_policydb_from_image(NULL, *image, *length, policydb) &&
	    !sepol_policydb_to_image(NULL, policydb, &again, length)) {
		free(*image);
		*image = again;
		result = 0;
	}
	sepol_policydb_free(policydb);
	return result;
}

/* Sets the booleans of a binary policy to `states`, by number, and sends the new image and its
 * model. */
static int set_booleans(const char *image, size_t length, const unsigned char *states, size_t count,
			int out)
{
	sepol_policydb_t *policydb = NULL;
	void *changed = NULL;
	int result = -1;

	if (sepol_policydb_create(&policydb))
		return -1;
	if (sepol_policydb_from_image(NULL, (void *)image, length, policydb))
		goto exit;
	if (inside(policydb)->p_bools.nprim != count) {
		fprintf(stderr, "it has %u booleans, %zu states were given\n",
			inside(policydb)->p_bools.nprim, count);
		goto exit;
	}
	for (size_t number = 0; number < count; number++)
		inside(policydb)->bool_val_to_struct[number]->state = !!states[number];
	if (evaluate_conds(inside(policydb)))
		goto exit;
	/* libsepol writes lists in the reverse of the order in which it read them. After the
	 * second time they are as they were, and setting values twice makes the same image. */
	if (sepol_policydb_to_image(NULL, policydb, &changed, &length) ||
	    rewrite(&changed, &length))
		goto exit;
	if (tollgate_section(out, TOLLGATE_IMAGE, changed, length) ||
	    read_image(changed, length, out))
		goto exit;
	result = 0;
exit:
	free(changed);
	sepol_policydb_free(policydb);
	return result;
}

static cil_db_t *open_sources(const struct tollgate_file *files, size_t count,
			      const struct tollgate_options *options)
{
	cil_db_t *db = NULL;

	/* At a lower level, libsepol 3.4 ignores file contexts that contradict each other. */
	cil_set_log_level(CIL_WARN);
	cil_db_init(&db);
	cil_set_target_platform(db, SEPOL_TARGET_SELINUX);
	/* libsepol 3.4 leaves these two uninitialized. */
	cil_set_multiple_decls(db, options->multiple_decls);
	cil_set_qualified_names(db, 0);
	cil_set_policy_version(db, options->version);
	cil_set_disable_neverallow(db, options->disable_neverallow);
	/* As in secilc by default, attributes that rules use are kept, so that explanations can
	 * name them. */
	cil_set_attrs_expand_generated(db, 0);
	cil_set_attrs_expand_size(db, 1);
	for (size_t i = 0; i < count; i++) {
		if (cil_add_file(db, files[i].name, files[i].text, files[i].length)) {
			cil_db_destroy(&db);
			return NULL;
		}
	}
	return db;
}

static int send_image(cil_db_t *db, int out)
{
	sepol_policydb_t *policydb = NULL;
	void *image = NULL;
	size_t length = 0;
	int result = -1;

	if (cil_build_policydb(db, &policydb))
		return -1;
	if (sepol_policydb_to_image(NULL, policydb, &image, &length))
		goto exit;
	/* The model is that of the image as a kernel will read it. */
	if (tollgate_section(out, TOLLGATE_IMAGE, image, length) || read_image(image, length, out))
		goto exit;
	result = 0;
exit:
	free(image);
	sepol_policydb_free(policydb);
	return result;
}

static int send_file_contexts(cil_db_t *db, int out)
{
	char *contexts = NULL;
	size_t length = 0;
	int result = -1;

	/* It ends with a null character, which the length includes. */
	if (!cil_filecons_to_string(db, &contexts, &length))
		result = tollgate_section(out, TOLLGATE_FILE_CONTEXTS, contexts,
					  strnlen(contexts, length));
	free(contexts);
	return result;
}

static int compile(const struct tollgate_file *files, size_t count,
		   const struct tollgate_options *options, int out)
{
	cil_db_t *db = open_sources(files, count, options);

	if (!db)
		return -1;
	if (cil_compile(db) || send_image(db, out))
		return -1;
	return send_file_contexts(db, out);
}

int tollgate_compile(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out)
{
	return listen() ? -1 : finish(out, compile(files, count, options, out));
}

/* Lets `write_to` write, and sends that as CIL. */
static int send_cil(int (*write_to)(FILE *stream, void *of), void *of, int out)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	int result;

	if (!stream)
		return -1;
	result = write_to(stream, of);
	if (fclose(stream))
		result = -1;
	if (!result)
		result = tollgate_section(out, TOLLGATE_CIL, text, length);
	free(text);
	return result;
}

static int write_resolved(FILE *stream, void *db)
{
	return cil_write_resolve_ast(stream, db);
}

int tollgate_resolve(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out)
{
	cil_db_t *db;

	if (listen())
		return -1;
	db = open_sources(files, count, options);
	return finish(out, db ? send_cil(write_resolved, db, out) : -1);
}

int tollgate_read(const char *image, size_t length, int out)
{
	return listen() ? -1 : finish(out, read_image(image, length, out));
}

int tollgate_set_booleans(const char *image, size_t length, const unsigned char *states,
			  size_t count, int out)
{
	return listen() ? -1 : finish(out, set_booleans(image, length, states, count, out));
}

static int write_package(FILE *stream, void *package)
{
	return sepol_module_package_to_cil(stream, package);
}

static int write_module(FILE *stream, void *policydb)
{
	return sepol_module_policydb_to_cil(stream, inside(policydb), 0);
}

static int read_package(const char *bytes, size_t length, int out)
{
	sepol_module_package_t *package = NULL;
	sepol_policy_file_t *file = NULL;
	int result = -1;

	if (sepol_module_package_create(&package) || sepol_policy_file_create(&file))
		return -1;
	sepol_policy_file_set_mem(file, (char *)bytes, length);
	if (!sepol_module_package_read(package, file, 0))
		result = send_cil(write_package, package, out);
	sepol_policy_file_free(file);
	sepol_module_package_free(package);
	return result;
}

static int read_module(const char *bytes, size_t length, int out)
{
	sepol_policydb_t *policydb = NULL;
	int result = -1;

	if (sepol_policydb_create(&policydb))
		return -1;
	if (!sepol_policydb_from_image(NULL, (void *)bytes, length, policydb))
		result = send_cil(write_module, policydb, out);
	sepol_policydb_free(policydb);
	return result;
}

int tollgate_module(const char *bytes, size_t length, int out)
{
	uint32_t magic = 0;

	if (listen())
		return -1;
	memcpy(&magic, bytes, length < sizeof(magic) ? length : sizeof(magic));
	if (le32toh(magic) == MODULE_PACKAGE_MAGIC)
		return finish(out, read_package(bytes, length, out));
	return finish(out, read_module(bytes, length, out));
}

uint32_t tollgate_newest(void)
{
	return sepol_policy_kern_vers_max();
}
