/* The number of entries in Tollgate's maps: what processes leave behind is a leak. */
#include "../acts/acts.h"
#include "fuzz.h"
#include <dirent.h>
#include <linux/bpf.h>

#define MAPS "/sys/fs/bpf/tollgate/maps"

static int is_table(int map)
{
	struct bpf_map_info info = {};
	union bpf_attr attr = {
		.info = {.bpf_fd = map, .info_len = sizeof info, .info = (uintptr_t)&info}};

	must(!syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr),
	     "BPF_OBJ_GET_INFO_BY_FD");
	return info.type == BPF_MAP_TYPE_HASH;
}

static long entries(int map)
{
	char keys[2][256];
	long count = 0;
	union bpf_attr attr = {.map_fd = map, .next_key = (uintptr_t)keys[0]};

	while (!syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &attr, sizeof attr)) {
		attr.key = (uintptr_t)keys[count % 2];
		attr.next_key = (uintptr_t)keys[++count % 2];
	}
	return count;
}

void count_entries(void)
{
	DIR *maps = opendir(MAPS);
	struct dirent *entry;

	must(maps != NULL, MAPS);
	while ((entry = readdir(maps))) {
		char name[300];
		union bpf_attr attr = {.pathname = (uintptr_t)name};
		int map;

		snprintf(name, sizeof name, MAPS "/%s", entry->d_name);
		map = entry->d_name[0] == '.'
			      ? -1
			      : (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof attr);
		if (map >= 0 && is_table(map))
			printf("%s %ld\n", entry->d_name, entries(map));
		close(map);
	}
	closedir(maps);
}
