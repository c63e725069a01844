/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the confined child does with libsepol. Each function writes its answer to the
 * descriptor `out` in sections (see tollgate_section). It returns 0, or -1 if libsepol
 * refused; the section TOLLGATE_MESSAGES then has libsepol's messages. The functions change
 * global state (stdout, stderr, libsepol's own), so a process may call only one, once.
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

/* Compiles CIL sources into MESSAGES, IMAGE, MODEL, FILE_CONTEXTS. */
int tollgate_compile(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out);
/* Resolves CIL sources into CIL, their resolved tree. */
int tollgate_resolve(const struct tollgate_file *files, size_t count,
		     const struct tollgate_options *options, int out);
/* Reads a binary policy into MODEL. */
int tollgate_read(const char *image, size_t length, int out);
/* Sets the booleans of a binary policy, by number. Writes IMAGE and MODEL. */
int tollgate_set_booleans(const char *image, size_t length, const unsigned char *states,
			  size_t count, int out);
/* Converts a module package, or a module, into CIL. */
int tollgate_module(const char *package, size_t length, int out);
/* Writes a section: tag (1 byte), length (8 bytes, little endian), content. */
int tollgate_section(int out, enum tollgate_tag tag, const void *content, size_t length);
/* The newest version of binary policies that libsepol reads. */
uint32_t tollgate_newest(void);

#endif
