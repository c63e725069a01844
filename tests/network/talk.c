/* Traffic for tests of labelled networking: it sends and receives what is wanted, and tells what
 * arrived with which label. Everything is printed as NAME=VALUE, one line per event. */
#define _GNU_SOURCE
#include "frame.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char USAGE[] =
	"talk recv udp|tcp|icmp 4|6 PORT [SECONDS]\n"
	"    prints what arrives; icmp: echo requests with PORT as identifier, 0: any\n"
	"talk echo udp|tcp 4|6 PORT [SECONDS]\n"
	"    sends back what arrives\n"
	"talk send udp|tcp|icmp 4|6 ADDRESS PORT LENGTH [COUNT]\n"
	"    [--gso SIZE] [--options HEX] [--df|--no-df] [--bind PORT] [--mark NUMBER]\n"
	"    [--wait MILLISECONDS]\n"
	"    sends patterns, and prints what the kernel and the other side answer\n"
	"talk begin 4|6 ADDRESS PORT LENGTH [--bind PORT] [--wait MILLISECONDS]\n"
	"    begins a connection with data, in fragments, and prints whether it is accepted\n"
	"talk bulk 4|6 PORT BYTES SECONDS [--to ADDRESS]\n"
	"    a stream both ways between two of these, one of which has --to\n"
	"talk sizes 4|6 ADDRESS PORT LENGTH... [--df|--no-df] [--wait MILLISECONDS]\n"
	"    sends datagrams to an echo server, and prints which come back whole\n"
	"talk offload DEVICE [FEATURE...]\n"
	"    switches off tso, gso, gro, tx-checksum or rx-checksum, and the others on\n"
	"talk capture DEVICE SECONDS\n"
	"    prints the headers of all IP packets, and a hash of what they carry\n"
	"talk keep DEVICE FILE PROTOCOL LENGTH [SECONDS]\n"
	"    keeps the next frame: a datagram (17) with so much in it, or any of another protocol\n"
	"talk inject DEVICE FILE LENGTH CHANGE [COUNT]\n"
	"    sends such a frame, changed, with so much in it; 0: as much as it had\n"
	"talk meet DEVICE NAME [SECONDS]\n"
	"    waits until the machine at the other end of the wire does the same\n"
	"talk trips 4|6 ADDRESS PORT LENGTH COUNT\n"
	"    sends datagrams to an echo server, and prints the percentiles of how long they take\n"
	"talk sink 4|6 PORT SECONDS\n"
	"    takes connections, and what comes by them\n"
	"talk stream|connections 4|6 ADDRESS PORT MILLISECONDS\n"
	"    sends to a sink, or connects to it, and prints how much or how often\n"
	"talk spaces COUNT MILLISECONDS [user] [--wait MILLISECONDS]\n"
	"    makes network namespaces with a socket in each, and keeps them for so long\n"
	"talk away ADDRESS PORT COUNT [--wait MILLISECONDS]\n"
	"    sends from another network namespace, by a socket of this one\n"
	"All take --ns NAME|PATH, a network namespace.\n";

void usage(const char *why)
{
	fprintf(stderr, "talk: %s\n%s", why, USAGE);
	exit(2);
}

void fail(const char *what)
{
	fprintf(stderr, "talk: %s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

int number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (!*text || *end || value < 0 || value > INT_MAX)
		usage("a number is expected");
	return value;
}

int number_or(const struct words *words, int at, int otherwise)
{
	return at < words->count ? number(words->rest[at]) : otherwise;
}

static void enter(const char *namespace)
{
	char path[PATH_MAX];
	int file;

	snprintf(path, sizeof(path), "%s%s", strchr(namespace, '/') ? "" : "/run/netns/",
		 namespace);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || setns(file, CLONE_NEWNET))
		fail(path);
	close(file);
}

/* Takes an option and its value. Returns how many words it took, 0: it is none. */
static int option(struct words *words, char **argument)
{
	static const char *const names[] = {"--ns",   "--options", "--to",  "--gso",
					    "--bind", "--wait",	   "--mark"};
	const char **texts[] = {&words->namespace, &words->options, &words->to};
	int *numbers[] = {&words->gso, &words->bind, &words->wait, &words->mark};

	if (!strcmp(argument[0], "--df") || !strcmp(argument[0], "--no-df")) {
		words->fragment = argument[0][2] == 'd' ? 1 : -1;
		return 1;
	}
	for (size_t i = 0; i < 7; i++) {
		if (strcmp(argument[0], names[i]))
			continue;
		if (!argument[1])
			usage("an option needs a value");
		if (i < 3)
			*texts[i] = argument[1];
		else
			*numbers[i - 3] = number(argument[1]);
		return 2;
	}
	return 0;
}

/* The family is a word of its own, except for commands that name a device. */
static void take_family(struct words *words, int at, int least)
{
	const char *text = at < words->count ? words->rest[at] : "";

	if (strcmp(text, "4") && strcmp(text, "6"))
		usage("the family is 4 or 6");
	words->family = *text == '4' ? AF_INET : AF_INET6;
	if (words->count < least)
		usage("words are missing");
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int (*run)(const struct words *);
		int family, least; /* the place of the family, and how many words there are */
	} commands[] = {{"recv", receive, 1, 3},
			{"echo", echo, 1, 3},
			{"send", transmit, 1, 5},
			{"bulk", bulk, 0, 4},
			{"begin", begin, 0, 4},
			{"capture", capture, -1, 2},
			{"sizes", sizes, 0, 4},
			{"offload", offload, -1, 1},
			{"keep", keep, -1, 4},
			{"inject", inject, -1, 4},
			{"meet", meet, -1, 2},
			{"spaces", spaces, -1, 2},
			{"away", away, -1, 3},
			{"trips", time_trips, 0, 5},
			{"sink", sink, 0, 3},
			{"stream", time_stream, 0, 4},
			{"connections", time_connections, 0, 4}};
	struct words words = {.wait = 500};

	words.rest = calloc(count + 1, sizeof(*words.rest));
	for (int i = 1, taken; i < count; i += taken ? taken : 1) {
		taken = option(&words, arguments + i);
		if (!taken)
			words.rest[words.count++] = arguments[i];
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; words.count && i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(words.rest[0], commands[i].name))
			continue;
		words.rest++;
		words.count--;
		if (commands[i].family >= 0)
			take_family(&words, commands[i].family, commands[i].least);
		else if (words.count < commands[i].least)
			usage("words are missing");
		if (words.namespace)
			enter(words.namespace);
		return commands[i].run(&words);
	}
	usage("there is no such command");
}
