/* Random calls with values that make sense. */
#ifndef TOLLGATE_FUZZ_H
#define TOLLGATE_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define RESULTS 1000 /* the descriptor to which results go: no call is given it */

struct call {
	const char *name;
	long (*make)(void); /* -1 and errno, or what the kernel gave */
};
/* All calls, which the linker puts in a row: to add one, write a function in calls/. */
extern const struct call __start_calls[], __stop_calls[];
#define CALL(called)                                                                               \
	static long call_##called(void);                                                           \
	static const struct call entry_of_##called                                                 \
		__attribute__((section("calls"), used, aligned(8))) = {#called, call_##called};    \
	static long call_##called(void)

/* Values: all follow from the seed. */
void prepare_values(uint64_t seed);
/* A number below a limit. */
uint64_t one_of(uint64_t limit);
/* One, or some, of these. */
#define PICK(...) pick((const long[]){__VA_ARGS__}, sizeof(long[]){__VA_ARGS__} / sizeof(long))
#define MIX(...) mix((const long[]){__VA_ARGS__}, sizeof(long[]){__VA_ARGS__} / sizeof(long))
long pick(const long *values, size_t count);
long mix(const long *values, size_t count);
/* A path, its open flags, a length, an attribute of files, a descriptor, a directory's or
 * AT_FDCWD, a process, a place in memory. */
const char *path(void);
int open_flags(void);
size_t size(void);
const char *attribute(void);
int descriptor(void);
int directory(void);
int process(void);
void *memory(void);
/* Keeps a descriptor that a call returned, or the address of mapped memory. */
long keep_descriptor(long descriptor);
void *keep_memory(void *memory);
/* Prints how many entries each of Tollgate's maps has. */
void count_entries(void);
/* Room that calls write to and read from. */
extern char buffer[4096];

#endif
