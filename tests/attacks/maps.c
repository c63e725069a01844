/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps: prints of which of the machine's maps this process gets a descriptor, for reading and for
 * writing. maps permit COMMAND...: a program writes to the map `tasks`, by a descriptor for
 * reading, that the task is permissive; then the command runs. maps load: which types of programs
 * it may load. maps links: what it may do to the links of other programs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static const char *said(int result)
{
	return result < 0 ? strerror(errno) : "ok";
}

static int by_id(unsigned id, unsigned flags)
{
	union bpf_attr get = {.map_id = id, .open_flags = flags};

	return bpf(BPF_MAP_GET_FD_BY_ID, &get);
}

static int next(int command, unsigned *id)
{
	union bpf_attr after = {.start_id = *id};

	if (bpf(command, &after))
		return 0;
	*id = after.next_id;
	return 1;
}

/* The map of this name, for reading; without a name, counts all maps that it can get. */
static int find(const char *name)
{
	unsigned id = 0, had = 0, refused = 0, written = 0;

	while (next(BPF_MAP_GET_NEXT_ID, &id)) {
		struct bpf_map_info info = {0};
		union bpf_attr tell = {0};
		int map = by_id(id, BPF_F_RDONLY);

		if (map < 0) {
			refused++;
			continue;
		}
		tell.info.bpf_fd = map;
		tell.info.info = (uintptr_t)&info;
		tell.info.info_len = sizeof info;
		if (name && !bpf(BPF_OBJ_GET_INFO_BY_FD, &tell) && !strcmp(info.name, name))
			return map;
		close(map);
		had++;
		map = by_id(id, 0);
		if (map >= 0) {
			close(map);
			written++;
		}
	}
	if (!name)
		printf("maps: %u had, %u of them for writing, %u refused\n", had, written, refused);
	return -1;
}

static int load(unsigned type, const struct bpf_insn *code, unsigned count, unsigned flags)
{
	static char log[65536];
	union bpf_attr program = {
		.prog_type = type,
		.insns = (uintptr_t)code,
		.insn_cnt = count,
		.license = (uintptr_t) "GPL",
		.prog_flags = flags,
		.log_level = 1,
		.log_buf = (uintptr_t)log,
		.log_size = sizeof log,
	};

	return bpf(BPF_PROG_LOAD, &program);
}

#define FLAGS 28 /* the offset of the flags in struct tg_task */
#define PERMISSIVE 1

static int permit(void)
{
	int map = find("tasks");
	struct bpf_insn code[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task_btf},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 0},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = 1,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = map},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_task_storage_get},
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .off = 1},
		{.code = BPF_ST | BPF_MEM | BPF_W, .off = FLAGS, .imm = PERMISSIVE},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr run = {0};
	int program;

	printf("tasks: %s\n", said(map));
	if (map < 0)
		return -1;
	program = load(BPF_PROG_TYPE_SYSCALL, code, sizeof code / sizeof *code, BPF_F_SLEEPABLE);
	printf("program: %s\n", said(program));
	run.test.prog_fd = program;
	return program < 0 ? -1 : bpf(BPF_PROG_TEST_RUN, &run);
}

/* A program that does nothing; of a type that needs more it is denied or found invalid. */
static void load_all(void)
{
	static const struct {
		unsigned type;
		const char *name;
	} types[] = {
		{BPF_PROG_TYPE_SOCKET_FILTER, "socket filter"},
		{BPF_PROG_TYPE_CGROUP_SKB, "control group"},
		{BPF_PROG_TYPE_KPROBE, "kprobe"},
		{BPF_PROG_TYPE_TRACEPOINT, "tracepoint"},
		{BPF_PROG_TYPE_PERF_EVENT, "perf event"},
		{BPF_PROG_TYPE_RAW_TRACEPOINT, "raw tracepoint"},
		{BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, "writable tracepoint"},
		{BPF_PROG_TYPE_TRACING, "tracing"},
		{BPF_PROG_TYPE_STRUCT_OPS, "operations"},
		{BPF_PROG_TYPE_EXT, "extension"},
		{BPF_PROG_TYPE_LSM, "security module"},
		{BPF_PROG_TYPE_SYSCALL, "system call"},
	};
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};

	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		unsigned flags = types[i].type == BPF_PROG_TYPE_SYSCALL ? BPF_F_SLEEPABLE : 0;
		int program = load(types[i].type, nothing, 2, flags);

		printf("%s: %s\n", types[i].name, said(program));
	}
}

/* Detaches and updates all links; prints how many of how many succeeded. */
static void links(void)
{
	unsigned id = 0, all = 0, detached = 0, updated = 0;

	while (next(BPF_LINK_GET_NEXT_ID, &id)) {
		union bpf_attr get = {.link_id = id}, detach = {0}, update = {0};
		int link = bpf(BPF_LINK_GET_FD_BY_ID, &get);

		all++;
		if (link < 0)
			continue;
		detach.link_detach.link_fd = link;
		update.link_update.link_fd = link;
		update.link_update.new_prog_fd = link;
		detached += !bpf(BPF_LINK_DETACH, &detach);
		updated += !bpf(BPF_LINK_UPDATE, &update);
		close(link);
	}
	printf("links: %s, %u detached, %u updated\n", all > 50 ? "many" : "few", detached,
	       updated);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "permit")) {
		printf("run: %s\n", said(permit()));
		fflush(stdout);
		execvp(argv[2], argv + 2);
		return 2;
	}
	if (argc > 1 && !strcmp(argv[1], "load"))
		load_all();
	else if (argc > 1)
		links();
	else
		find(NULL);
	return 0;
}
