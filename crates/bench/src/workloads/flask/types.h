/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all parts of the program share. It has no library: what it needs is here. */
#ifndef TYPES_H
#define TYPES_H

typedef unsigned char byte;
typedef unsigned int word;
typedef unsigned long long wide;

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ROTATED(value, by) ((value) << (by) | (value) >> (32 - (by)))

/* A node of a tree or of a list. */
struct node {
	struct node *left, *right;
	word key, weight;
};

/* An order that a machine carries out. */
struct order {
	word code, first, second;
};

/* A stretch of bytes. */
struct text {
	byte bytes[64];
	word length;
};

#endif
