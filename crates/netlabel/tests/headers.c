// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads cases from standard input, and prints what the headers of bpf/ make of them, a line each. A
 * case is a byte that says what it is, a length of two bytes (little endian), and as many bytes:
 * '4', options of an IPv4 header; '6', a hop-by-hop header; 'm', a key, addresses and the rest of
 * what a MAC covers; 'w', low bits of a time window and the time.
 *
 * Buffers are allocations of their own, so that the sanitizers see what is read outside of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calipso.h"
#include "sealed.h"
#include "write.h"

#define MOST 65535

static void *copied(const __u8 *bytes, size_t length, size_t room)
{
	void *copy = calloc(1, room);

	if (!copy)
		abort();
	memcpy(copy, bytes, length < room ? length : room);
	return copy;
}

static void print(int error, const struct tg_netlabel *label)
{
	printf("%d %u %u %u", error, label->option, label->at, label->length);
	printf(" %u %u %u %u", label->tag, label->doi, label->sensitivity, label->context);
	printf(" %u %u %u %u %llu", label->node, label->key, label->window, label->generation,
	       (unsigned long long)label->mac);
	for (int word = 0; word < (int)(TG_LABEL_CATEGORIES / 64); word++)
		printf(" %llu", (unsigned long long)label->categories[word]);
	putchar('\n');
}

static void read_label(int kind, const __u8 *bytes, __u32 length)
{
	struct tg_netlabel *label = malloc(sizeof(*label));
	int error;

	if (!label)
		abort();
	memset(label, 0xff, sizeof(*label));
	if (kind == '4') {
		struct tg_ipv4_options *options = copied(bytes, length, sizeof(*options));

		error = tg_ipv4_label(options, length, label);
		free(options);
	} else {
		struct tg_ipv6_options *options = copied(bytes, length, sizeof(*options));

		error = tg_ipv6_label(options, length, label);
		free(options);
	}
	print(error, label);
	free(label);
}

static void compute_mac(const __u8 *bytes, __u32 length)
{
	struct tg_seal_key key;
	struct tg_seal_input input;
	__u64 addresses[4];
	size_t size = length - sizeof(key) - sizeof(input);

	if (size != 8 && size != 32)
		abort();
	memcpy(&key, bytes, sizeof(key));
	memcpy(addresses, bytes + sizeof(key), size);
	memcpy(&input, bytes + sizeof(key) + size, sizeof(input));
	printf("%llu\n", (unsigned long long)tg_seal(addresses, size / 8, &input, &key));
}

static void find_window(const __u8 *bytes, __u32 length)
{
	__u16 low;
	__u64 now, window;

	if (length != sizeof(low) + sizeof(now))
		abort();
	memcpy(&low, bytes, sizeof(low));
	memcpy(&now, bytes + sizeof(low), sizeof(now));
	window = tg_seal_window(low, now);
	printf("%llu %d\n", (unsigned long long)window, tg_seal_is_fresh(window, now, 0xffff));
}

/* Writes the label whose members are given, in the order of struct tg_netlabel, as an option of
 * `option`. */
static void write_label(const __u8 *bytes, __u32 length)
{
	struct tg_netlabel *label = malloc(sizeof(*label));
	struct tg_ipv4_options *four = malloc(sizeof(*four));
	struct tg_ipv6_options *six = malloc(sizeof(*six));
	__u8 *written = four ? four->bytes : 0;
	__u32 size;

	if (!label || !four || !six || length != sizeof(*label))
		abort();
	memcpy(label, bytes, length);
	memset(four, 0xff, sizeof(*four));
	memset(six, 0xff, sizeof(*six));
	if (label->option == TG_OPTION_CIPSO) {
		size = tg_cipso_write(four, label);
	} else if (label->option == TG_OPTION_IPV4_EXPERIMENT) {
		size = tg_sealed_write4(four, label);
	} else {
		size = label->option == TG_OPTION_CALIPSO ? tg_calipso_write(six, label)
							  : tg_sealed_write6(six, label);
		written = six->bytes;
	}
	for (__u32 byte = 0; byte < size; byte++)
		printf("%02x", written[byte]);
	printf("\n");
	free(label);
	free(four);
	free(six);
}

int main(void)
{
	static __u8 bytes[MOST];
	__u8 head[3];

	while (fread(head, sizeof(head), 1, stdin) == 1) {
		__u32 length = head[1] | head[2] << 8;

		if (length && fread(bytes, length, 1, stdin) != 1)
			return 1;
		if (head[0] == 'm')
			compute_mac(bytes, length);
		else if (head[0] == 'w')
			find_window(bytes, length);
		else if (head[0] == 'o')
			write_label(bytes, length);
		else
			read_label(head[0], bytes, length);
	}
	return 0;
}
