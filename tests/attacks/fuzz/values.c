/* Arguments of the calls: objects of several labels, and results of earlier calls. */
#include "../acts/acts.h"
#include "fuzz.h"
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DESCRIPTORS 12
#define MAPPINGS 4

char buffer[4096];
static uint64_t state;
static int descriptors[DESCRIPTORS];
static void *mappings[MAPPINGS];

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t value = state += 0x9e3779b97f4a7c15;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return value ^ value >> 31;
}

uint64_t one_of(uint64_t limit)
{
	return next() % limit;
}

long pick(const long *values, size_t count)
{
	return values[one_of(count)];
}

long mix(const long *values, size_t count)
{
	long mixed = 0;

	for (size_t value = 0; value < count; value++)
		if (one_of(3) == 0)
			mixed |= values[value];
	return mixed;
}

const char *path(void)
{
	static const char *const names[] = {
		"own",
		"paper",
		"folder",
		"link",
		"to-secret",
		"fifo",
		"new",
		"other",
		"folder/new",
		".",
		"fuzz",
		SECRET,
		NOTICE,
		VAULT,
		VAULT "/new",
		"/srv/notices",
		"/srv/notices/new",
		"/proc/self/mem",
		"/proc/self/environ",
		"/proc/self/exe",
		"/proc/thread-self/root" SECRET,
		"/proc/sys/kernel/domainname",
		"/proc/net/arp",
		"null",
		"/srv/gate",
	};
	static const char *const of_keeper[] = {"mem",	       "maps",		"environ", "exe",
						"root" SECRET, "oom_score_adj", "fd/0"};
	static char names_made[4][64];
	static int at;
	char *made = names_made[at++ % 4];
	uint64_t kind = one_of(8);

	if (kind > 1)
		return names[one_of(sizeof names / sizeof *names)];
	if (kind)
		snprintf(made, sizeof *names_made, "/proc/self/fd/%d", descriptor());
	else
		snprintf(made, sizeof *names_made, "/proc/%d/%s", keeper(),
			 of_keeper[one_of(sizeof of_keeper / sizeof *of_keeper)]);
	return made;
}

int descriptor(void)
{
	return descriptors[one_of(DESCRIPTORS)];
}

int directory(void)
{
	return one_of(4) ? AT_FDCWD : descriptor();
}

int process(void)
{
	return one_of(2) ? keeper() : getpid();
}

void *memory(void)
{
	return mappings[one_of(MAPPINGS)];
}

long keep_descriptor(long made)
{
	int *kept = &descriptors[one_of(DESCRIPTORS)];

	if (made < 0)
		return -1;
	close(*kept);
	*kept = made;
	return made;
}

void *keep_memory(void *made)
{
	if (made != MAP_FAILED)
		mappings[one_of(MAPPINGS)] = made;
	return made;
}

void prepare_values(uint64_t seed)
{
	int pair[2];

	state = seed;
	write_file("own", "own");
	write_file("paper", "paper");
	must(!mkdir("folder", 0777) && !symlink("own", "link") && !symlink(SECRET, "to-secret") &&
		     !mkfifo("fifo", 0666) && !mknod("null", S_IFCHR | 0666, makedev(1, 3)),
	     "files of one's own");
	descriptors[0] = open("own", O_RDWR);
	descriptors[1] = open("paper", O_RDWR);
	descriptors[2] = open(NOTICE, O_RDONLY);
	descriptors[3] = open(SECRET, O_PATH);
	descriptors[4] = open("folder", O_RDONLY | O_DIRECTORY);
	descriptors[5] = open(VAULT, O_PATH);
	must(!pipe2(pair, O_NONBLOCK), "pipe");
	descriptors[6] = pair[0];
	descriptors[7] = pair[1];
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), "socketpair");
	descriptors[8] = pair[0];
	descriptors[9] = pair[1];
	descriptors[10] = memfd_create("memory", 0);
	descriptors[11] = eventfd(0, EFD_NONBLOCK);
	for (int place = 0; place < MAPPINGS; place++)
		mappings[place] = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(buffer, 'x', sizeof buffer / 2);
}

int open_flags(void)
{
	return PICK(O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE, O_PATH) | O_NONBLOCK |
	       MIX(O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_DIRECTORY, O_NOATIME);
}

size_t size(void)
{
	return PICK(0, 1, 7, 512);
}

const char *attribute(void)
{
	static const char *const names[] = {"user.kept", "user.other", "trusted.kept",
					    "system.posix_acl_access"};

	return names[one_of(sizeof names / sizeof *names)];
}
