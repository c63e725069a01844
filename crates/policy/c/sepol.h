/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the confined child lets libsepol do. Each function writes its answer to the descriptor `out`
 * in sections (see tollgate_section) and returns 0, or -1 when libsepol refused; what libsepol said
 * is the section TOLLGATE_MESSAGES then. They change global state (stdout, stderr, libsepol's own):
 * one call a process.
 */
#ifndef TOLLGATE_SEPOL_H
#define TOLLGATE_SEPOL_H

#include <stddef.h>
#include <stdint.h>

enum tollgate_tag {
	TOLLGATE_END = 0,	    /* last, empty */
	TOLLGATE_MESSAGES = 1,	    /* text */
	TOLLGATE_IMAGE = 2,	    /* a binary policy */
	TOLLGATE_MODEL = 3,	    /* tollgate_dump's stream */
	TOLLGATE_FILE_CONTEXTS = 4, /* text */
	TOLLGATE_CIL = 5,	    /* text */
	TOLLGATE_REFUSED_STEP = 6,  /* the step of confinement that was refused; Rust writes it */
};

struct tollgate_file {
	const char *name;
	const char *text;
	size_t length;
};

struct tollgate_options {
	uint32_t version; /* of the binary policy */
	uint32_t disable_neverallow;
	uint32_t multiple_decls; /* declarations and file contexts may be repeated */
};

/* CIL sources to MESSAGES, IMAGE, MODEL, FILE_CONTEXTS. */
int tollgate_compile(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out);
/* CIL sources to CIL, their resolved tree. */
int tollgate_resolve(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out);
/* A binary policy to MODEL. */
int tollgate_read(const char *image, size_t length, int out);
/* A binary policy, and a state for each of its booleans by number, to IMAGE, MODEL. */
int tollgate_set_booleans(const char *image, size_t length, const unsigned char *states,
			  size_t count, int out);
/* A module package, or a module, to CIL. */
int tollgate_module(const char *package, size_t length, int out);
/* A section: tag (1 byte), length (8 bytes, little endian), content. */
int tollgate_section(int out, enum tollgate_tag tag, const void *content, size_t length);
/* The newest binary policy that libsepol reads. */
uint32_t tollgate_newest(void);

#endif
