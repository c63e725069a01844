/* SPDX-License-Identifier: MIT */
/* What a form of attack is made of, as the weak program and its attacker name it. */
#ifndef FORMS_H
#define FORMS_H

enum location { STACK, HEAP, BSS, DATA, LOCATIONS };
enum target { RETURN, BASE, FUNCTION, JUMP, STRUCT, LINKAGE, TARGETS };
enum copy { MEMCPY, STRCPY, SPRINTF, READ, COPIES };

#define ROOM 0x1c00
/* What the weak program stores through its pointer, and how much of it at a return address. */
#define STORED 0x40
#define STORED_LENGTH 192

/* A record whose buffer can be overrun, with what lies behind it. */
struct record {
	char buffer[ROOM];
	union {
		void (*call)(const char *);
		long jump[5];
		struct {
			long number;
			void (*call)(const char *);
		} operations;
		char *where;
	} next;
};

#endif
