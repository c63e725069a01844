/* Code in memory that may not be executed, and memory that is a file. */
#include "acts.h"
#include <elf.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define PAGE 4096

static int mapped(int protection, int kind)
{
	return outcome((long)mmap(NULL, PAGE, protection, kind, open(NOTICE, O_RDONLY), 0));
}

static int executable_mapping(void)
{
	return mapped(PROT_READ | PROT_EXEC, MAP_PRIVATE);
}

static int executable_shared_mapping(void)
{
	return mapped(PROT_READ | PROT_EXEC, MAP_SHARED);
}

static int executable_later(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, open(NOTICE, O_RDONLY), 0);

	return page == MAP_FAILED ? failed() : outcome(mprotect(page, PAGE, PROT_READ | PROT_EXEC));
}

/* A personality with which readable memory is executable. */
static int executable_by_personality(void)
{
	personality(READ_IMPLIES_EXEC);
	return mapped(PROT_READ, MAP_PRIVATE);
}

/* The same, by a call that remaps memory; `paper` is of a type that no confined domain may
 * execute. */
static int executable_by_remapping(void)
{
	char line[256], address[32];
	FILE *maps;
	int file = open("paper", O_RDWR | O_CREAT, 0777);
	void *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (ftruncate(file, 2 * PAGE) || pages == MAP_FAILED ||
	    mprotect(pages, 2 * PAGE, PROT_READ))
		return failed();
	personality(READ_IMPLIES_EXEC);
	if (syscall(SYS_remap_file_pages, pages, (long)PAGE, 0L, 1L, 0L))
		return failed();
	maps = fopen("/proc/self/maps", "r");
	snprintf(address, sizeof address, "%lx-", (unsigned long)pages);
	while (fgets(line, sizeof line, maps))
		if (!strncmp(line, address, strlen(address)))
			return strstr(line, " r-xs ") ? REACHED : MISSED;
	return MISSED;
}

/* Files that may be mapped as the program that /proc/self/exe names. */
static int program_renamed(void)
{
	prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, open(NOTICE, O_RDONLY), 0, 0);
	/* Our own program is still mapped, which is checked last. */
	return errno == EBUSY ? REACHED : failed();
}

static void make_notice_executable(void)
{
	must(!chmod(NOTICE, 0777), NOTICE);
}

/* Executes a file; returns whether that was allowed. */
static int executes(const char *path)
{
	char *words[] = {"act", NULL};

	execv(path, words);
	return errno == ENOEXEC ? REACHED : failed();
}

static int interpreter_of_script(void)
{
	write_file("script", "#!" NOTICE "\n");
	chmod("script", 0777);
	return executes("./script");
}

/* An ELF program whose loader the kernel opens and maps for it. */
static int interpreter_of_program(void)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr parts[2];
		char loader[sizeof NOTICE];
	} program = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof program.header,
			   .e_ehsize = sizeof program.header,
			   .e_phentsize = sizeof *program.parts,
			   .e_phnum = 2},
		.parts = {{.p_type = PT_INTERP,
			   .p_offset = offsetof(typeof(program), loader),
			   .p_filesz = sizeof NOTICE},
			  {.p_type = PT_LOAD,
			   .p_flags = PF_R,
			   .p_filesz = sizeof program,
			   .p_memsz = sizeof program}},
		.loader = NOTICE,
	};
	int file = open("program", O_WRONLY | O_CREAT, 0777);

	must(write(file, &program, sizeof program) == sizeof program, "program");
	close(file);
	execl("./program", "program", NULL);
	/* A loader that is no program, or too short, has been opened by then. */
	return errno == ENOEXEC || errno == ELIBBAD || errno == EIO ? REACHED : failed();
}

static int executed_from_memory(void)
{
	static char *const words[] = {"memory", NULL};
	int status, memory = memfd_create("program", MFD_CLOEXEC);
	int program = open(PROBE, O_RDONLY);
	pid_t child;

	while (sendfile(memory, program, NULL, 1 << 20) > 0)
		;
	child = fork();
	if (!child) {
		fexecve(memory, words, environ);
		_exit(1);
	}
	waitpid(child, &status, 0);
	/* The domain does not matter here, only that it runs. */
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? -EACCES : REACHED;
}

static int userfault(void)
{
	return outcome(syscall(SYS_userfaultfd, O_CLOEXEC));
}

/* The same by its device, of 6.1. */
static int userfault_by_device(void)
{
	int device = open("/dev/userfaultfd", O_RDWR);

	return device < 0 ? failed() : outcome(ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC));
}

static int secret_memory(void)
{
	return outcome(syscall(SYS_memfd_secret, 0));
}

static int executable_segment(void)
{
	int segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0700);
	int result = outcome((long)shmat(segment, NULL, SHM_EXEC));

	shmctl(segment, IPC_RMID, NULL);
	return result;
}

static int memory_of_kernel(void)
{
	return outcome(open("/proc/kcore", O_RDONLY));
}

/* The machine's memory by a device of the intruder's own making. */
static int memory_by_device(void)
{
	char byte;
	int memory;

	if (mknod("mem", S_IFCHR | 0600, makedev(1, 1)))
		return failed();
	memory = open("mem", O_RDONLY);
	return memory < 0 ? failed() : outcome(read(memory, &byte, 1));
}

const struct act memory_acts[] = {
	{"executable_mapping", executable_mapping},
	{"executable_shared_mapping", executable_shared_mapping},
	{"executable_later", executable_later},
	{"executable_by_personality", executable_by_personality},
	{"executable_by_remapping", executable_by_remapping},
	{"program_renamed", program_renamed, .prepare = make_notice_executable},
	{"interpreter_of_script", interpreter_of_script, .prepare = make_notice_executable},
	{"interpreter_of_program", interpreter_of_program, .prepare = make_notice_executable},
	{"executed_from_memory", executed_from_memory},
	{"userfault", userfault},
	{"userfault_by_device", userfault_by_device},
	{"secret_memory", secret_memory},
	{"executable_segment", executable_segment},
	{"memory_of_kernel", memory_of_kernel},
	{"memory_by_device", memory_by_device},
	{},
};
