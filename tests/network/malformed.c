/* Options that no sender writes: those that parsers get wrong, and random changes of them. */
#define _GNU_SOURCE
#include "frame.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 64

/* Options of IPv4. CIPSO is 86 LENGTH DOI, then tags: KIND LENGTH 00 LEVEL CATEGORIES. */
static const char *const FOUR[] = {
	"860c0000000101060001c000",			       /* s1:c0,c1 */
	"860c0000000201060001c000",			       /* an unknown domain */
	"860c0000000001060001c000",			       /* domain 0 */
	"860c0000000100060001c000",			       /* tag 0 */
	"860c0000000103060001c000",			       /* tag 3 */
	"860c0000000107060001c000",			       /* tag 7 */
	"860c00000001800600000001",			       /* tag 128, of SIDs */
	"860c0000000101000001c000",			       /* a tag of 0 bytes */
	"860c0000000101030001c000",			       /* of 3 */
	"860c0000000101230001c000",			       /* of 35 */
	"860c00000001010600ffc000",			       /* level 255 */
	"860e000000010208000100050003",			       /* not sorted */
	"860e000000010208000104000401",			       /* above all categories */
	"860e000000010508000100030005",			       /* a range that descends */
	"860c0000000101060001c000860c0000000101060001c000",    /* two labels */
	"860c0000000101060001c000860c0000000101060003c000",    /* two that differ */
	"860000000001010600010000",			       /* an option of 0 bytes */
	"860100000001010600010000",			       /* of 1 */
	"860500000001010600010000",			       /* of 5 */
	"860600000001010600010000",			       /* of 6, without tags */
	"86290000000101060001c000",			       /* of 41 */
	"00860c0000000101060001c0",			       /* behind the end */
	"0101010101010101010101010101010101010101010101010101" /* cut after its kind */
	"01010101010101010101010101"
	"86",
	"440c0500000000000000000000000000860c0000000101060001c000", /* beside time stamps */
	"9e16010100000008000000000000000000000000000000000000",	    /* sealed, of nobody */
	"9e0401010000",						    /* sealed, too short */
};

/* The options of a hop-by-hop header. CALIPSO is 07 LENGTH DOI WORDS LEVEL CRC CATEGORIES; the CRC
 * is filled in where it is 0. */
static const char *const SIX[] = {
	"070c0000000101010000c0000000",				   /* s1:c0,c1 */
	"070c0000000101011234c0000000",				   /* a wrong CRC */
	"070c0000000201010000c0000000",				   /* an unknown domain */
	"070c0000000001010000c0000000",				   /* domain 0 */
	"070c0000000101ff0000c0000000",				   /* level 255 */
	"070c00000001ff010000c0000000",				   /* 255 words */
	"070c0000000102010000c0000000",				   /* one too many */
	"070c0000000100010000c0000000",				   /* one too few */
	"070000000001010100000000c000",				   /* an option of 0 bytes */
	"070100000001010100000000c000",				   /* of 1 */
	"070500000001010100000000c000",				   /* of 5 */
	"070700000001010100000000c000",				   /* of 7 */
	"072900000001010100000000c000",				   /* of 41 */
	"07280000000108010000000000000000000000000000000000000000" /* category 255 */
	"0000000000000000000000000001",
	"070c0000000101010000c0000000070c0000000101010000c0000000", /* two labels */
	"01c80000000000000000000000000000",			    /* padding beyond the end */
	"01080000000000000000070c0000000101010000c0000000",	    /* too much padding */
	"c20400010000070c0000000101010000c0000000",		    /* a jumbogram */
	"05020000070c0000000101010000c0000000",			    /* a router's alert */
	"1e1401010000000800000000000000000000000000000000",	    /* sealed, of nobody */
	"1e0401010000",						    /* sealed, too short */
};

static size_t bytes_of(const char *text, uint8_t *bytes)
{
	size_t count = strlen(text) / 2;

	for (size_t i = 0; i < count; i++)
		sscanf(text + 2 * i, "%2hhx", bytes + i);
	return count;
}

/* CALIPSO's CRC, of the option with 0 in the CRC's place. */
static void put_crc(uint8_t *option, size_t count)
{
	uint16_t crc = 0xffff;

	option[8] = option[9] = 0;
	for (size_t i = 0; i < count; i++) {
		crc ^= option[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x8408 : crc >> 1;
	}
	crc = ~crc;
	option[8] = crc, option[9] = crc >> 8;
}

/* Pads what follows `before` bytes up to whole units. Returns the length. */
static size_t padded(uint8_t *options, size_t count, size_t unit)
{
	while (count % unit)
		options[count++] = 0;
	return count;
}

size_t level_option(bool four, uint32_t number, uint8_t *options)
{
	static const uint8_t CIPSO[] = {0x86, 14, 0, 0, 0, 1, 1, 8, 0, 3};
	static const uint8_t CALIPSO[] = {0, 1, 7, 12, 0, 0, 0, 1, 1, 3, 0, 0};
	size_t size = four ? sizeof(CIPSO) : sizeof(CALIPSO);

	memcpy(options, four ? CIPSO : CALIPSO, size);
	for (int shift = 24; shift >= 0; shift -= 8)
		options[size++] = number >> shift;
	if (!four)
		put_crc(options + 2, size - 2);
	return padded(options, size, four ? 4 : 8);
}

/* One of the lists. */
static size_t listed(bool four, uint32_t place, uint8_t *options)
{
	size_t count;

	if (four)
		return padded(options,
			      bytes_of(FOUR[place % (sizeof(FOUR) / sizeof(*FOUR))], options), 4);
	memset(options, 0, 2);
	count = 2 + bytes_of(SIX[place % (sizeof(SIX) / sizeof(*SIX))], options + 2);
	if (options[2] == 7 && !options[10] && !options[11] && (size_t)options[3] + 4 <= count)
		put_crc(options + 2, options[3] + 2);
	return padded(options, count, 8);
}

/* Changes up to four bytes of options, their length, or where the packet ends. */
static void change(struct frame *frame, size_t size)
{
	uint8_t *options = options_of(frame);

	for (uint32_t left = random_number() % 4 + 1; left && size; left--)
		options[random_number() % size] = random_number();
	if (!(random_number() & 7))
		frame->bytes[LINK_HEADER] ^= random_number() & 15;
	if (!(random_number() & 15))
		frame->count = options - frame->bytes + random_number() % (size + 1);
}

void send_malformed(struct injection *injection, const struct frame *seed, long count)
{
	for (long i = 0; i < count; i++) {
		struct frame frame = *seed;
		uint8_t options[LONGEST];
		bool as_listed = !(random_number() & 3);

		/* The rest are changes of one of the lists, or of the genuine label. */
		if (as_listed || random_number() & 1)
			set_options(&frame, options, listed(seed->four, random_number(), options));
		frame.bytes[frame.transport + 3] = i & 1 ? 7001 & 255 : 7000 & 255;
		finish(&frame);
		if (!as_listed) {
			change(&frame, options_size(&frame));
			if (frame.four)
				finish_header(&frame);
		}
		inject_frame(injection, &frame);
	}
}
