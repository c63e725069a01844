/* What a device does for the kernel (ethtool's features): switched on or off, and told. */
#define _GNU_SOURCE
#include "talk.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

static const struct {
	const char *name;
	uint32_t set, get;
} FEATURES[] = {
	{"tx-checksum", ETHTOOL_STXCSUM, ETHTOOL_GTXCSUM},
	{"rx-checksum", ETHTOOL_SRXCSUM, ETHTOOL_GRXCSUM},
	{"tso", ETHTOOL_STSO, ETHTOOL_GTSO},
	{"gso", ETHTOOL_SGSO, ETHTOOL_GGSO},
	{"gro", ETHTOOL_SGRO, ETHTOOL_GGRO},
};

/* Does one of ethtool's commands. Returns 0, or the error. */
static int ask(int file, const char *device, struct ethtool_value *value)
{
	struct ifreq request = {.ifr_data = (char *)value};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	return ioctl(file, SIOCETHTOOL, &request) ? errno : 0;
}

/* Words after the device: features to switch off; all others are switched on. Some cannot be. */
int offload(const struct words *words)
{
	int file = socket(AF_INET, SOCK_DGRAM, 0);

	printf("offload %s", words->rest[0]);
	for (size_t i = 0; i < sizeof(FEATURES) / sizeof(*FEATURES); i++) {
		struct ethtool_value value = {.cmd = FEATURES[i].set, .data = 1};

		for (int at = 1; at < words->count; at++)
			if (!strcmp(words->rest[at], FEATURES[i].name))
				value.data = 0;
		ask(file, words->rest[0], &value);
	}
	for (size_t i = 0; i < sizeof(FEATURES) / sizeof(*FEATURES); i++) {
		struct ethtool_value value = {.cmd = FEATURES[i].get};

		if (ask(file, words->rest[0], &value))
			fail("ethtool");
		printf(" %s=%s", FEATURES[i].name, value.data ? "on" : "off");
	}
	putchar('\n');
	return 0;
}
