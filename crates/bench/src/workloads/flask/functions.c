/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the generated program is made of: functions, each with what it needs, separated by lines of
 * two equals signs. NAME and SEED are replaced: no two of the program are the same.
 */
#include "types.h"
/* == */
/* A ring that forgets the oldest word when it is full. */
static word NAME_ring[32], NAME_head, NAME_filled;

static word NAME_put(word value)
{
	word gone = 0, room = COUNT_OF(NAME_ring);

	if (NAME_filled == room) {
		gone = NAME_ring[NAME_head];
		NAME_head = (NAME_head + 1) % room;
		NAME_filled--;
	}
	NAME_ring[(NAME_head + NAME_filled++) % room] = value;
	return gone;
}

/* Puts words in, and adds up those that fall out. */
word NAME(word input)
{
	word sum = 0;

	for (word turn = 0; turn < 48; turn++)
		sum += NAME_put(ROTATED(input ^ turn, 7) + SEEDu);
	return sum;
}
/* == */
/* Sorts by insertion, and tells how far the words have moved. */
word NAME(word input)
{
	word values[24], moved = 0, next = input | 1;

	for (word i = 0; i < COUNT_OF(values); i++) {
		next = next * 1664525u + SEEDu;
		values[i] = next >> 8;
	}
	for (word i = 1; i < COUNT_OF(values); i++) {
		word value = values[i], place = i;

		while (place > 0 && values[place - 1] > value) {
			values[place] = values[place - 1];
			place--;
			moved++;
		}
		values[place] = value;
	}
	return moved ^ values[0];
}
/* == */
/* A machine of four registers; an order that it does not know ends it. */
static const struct order NAME_program[] = {
	{0, 0, SEEDu}, {1, 1, 0}, {2, 1, 3}, {3, 2, 1}, {4, 3, 2}, {1, 0, 3}, {5, 0, 0}, {9, 0, 0},
};

word NAME(word input)
{
	word registers[4] = {input, 1, 2, 3};

	for (word at = 0; at < COUNT_OF(NAME_program); at++) {
		const struct order *order = &NAME_program[at];
		word *first = &registers[order->first & 3], second = registers[order->second & 3];

		switch (order->code) {
		case 0:
			*first ^= order->second;
			break;
		case 1:
			*first += second;
			break;
		case 2:
			*first = *first * 31 + second;
			break;
		case 3:
			*first -= second >> 1;
			break;
		case 4:
			*first |= second & 0xff00u;
			break;
		case 5:
			*first = ROTATED(*first, 5);
			break;
		default:
			return registers[0] ^ registers[3];
		}
	}
	return registers[0];
}
/* == */
/* A tree that is not balanced: keys go left or right, and are added up by depth. */
static struct node NAME_nodes[40];

static word NAME_sum(const struct node *node, word depth)
{
	if (!node)
		return 0;
	return node->weight * depth + NAME_sum(node->left, depth + 1) +
	       NAME_sum(node->right, depth + 1);
}

word NAME(word input)
{
	struct node *root = 0;

	for (word i = 0; i < COUNT_OF(NAME_nodes); i++) {
		struct node *node = &NAME_nodes[i], **place = &root;

		node->left = node->right = 0;
		node->key = (input + i) * 2654435761u ^ SEEDu;
		node->weight = node->key & 15;
		while (*place)
			place = node->key < (*place)->key ? &(*place)->left : &(*place)->right;
		*place = node;
	}
	return NAME_sum(root, 1);
}
/* == */
/* Writes a number in a base, reads it again, and tells whether it is the same. */
static void NAME_write(struct text *text, word value, word base)
{
	text->length = 0;
	do {
		word digit = value % base;

		text->bytes[text->length++] = (byte)(digit < 10 ? '0' + digit : 'a' + digit - 10);
		value /= base;
	} while (value);
}

static word NAME_read(const struct text *text, word base)
{
	word value = 0;

	for (word i = text->length; i > 0; i--) {
		byte letter = text->bytes[i - 1];

		value = value * base + (letter <= '9' ? letter - '0' : letter - 'a' + 10);
	}
	return value;
}

word NAME(word input)
{
	struct text text;
	word same = 0;

	for (word base = 2; base <= 16; base++) {
		NAME_write(&text, input ^ SEEDu, base);
		same += NAME_read(&text, base) == (input ^ SEEDu);
	}
	return same;
}
/* == */
/* A sum that tells texts apart, bit by bit. */
word NAME(word input)
{
	byte bytes[48];
	word sum = ~SEEDu;

	for (word i = 0; i < COUNT_OF(bytes); i++)
		bytes[i] = (byte)(input >> (i & 3) * 8 ^ i * 13);
	for (word i = 0; i < COUNT_OF(bytes); i++) {
		sum ^= bytes[i];
		for (word bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	return sum;
}
/* == */
/* Looks words up in a table that is sorted, by halves. */
static const word NAME_table[] = {
	2,  3,	5,  7,	11, 13, 17, 19, 23, 29, 31,  37,  41,  43,  47,
	53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
};

word NAME(word input)
{
	word found = 0;

	for (word turn = 0; turn < 16; turn++) {
		word wanted = (input + turn * SEEDu) % 128, low = 0, high = COUNT_OF(NAME_table);

		while (low < high) {
			word middle = low + (high - low) / 2;

			if (NAME_table[middle] < wanted)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < COUNT_OF(NAME_table) && NAME_table[low] == wanted)
			found++;
	}
	return found;
}
/* == */
/* A matrix to a power, modulo a prime. */
static void NAME_multiply(wide into[3][3], const wide by[3][3])
{
	wide product[3][3];

	for (word row = 0; row < 3; row++)
		for (word column = 0; column < 3; column++) {
			wide sum = 0;

			for (word i = 0; i < 3; i++)
				sum += into[row][i] * by[i][column] % 1000003u;
			product[row][column] = sum % 1000003u;
		}
	for (word row = 0; row < 3; row++)
		for (word column = 0; column < 3; column++)
			into[row][column] = product[row][column];
}

word NAME(word input)
{
	wide power[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
	wide base[3][3] = {{SEEDu % 1000003u, 1, 2}, {3, input % 1000003u, 4}, {5, 6, 7}};

	for (word turn = 0; turn < 12; turn++)
		NAME_multiply(power, base);
	return (word)(power[0][0] ^ power[1][1] ^ power[2][2]);
}
