/* Memory. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <sys/mman.h>
#include <sys/personality.h>

CALL(mmap)
{
	void *made = mmap(NULL, 8192, MIX(PROT_READ, PROT_WRITE, PROT_EXEC),
			  PICK(MAP_PRIVATE, MAP_SHARED), descriptor(), 0);

	return keep_memory(made) == MAP_FAILED ? -1 : 0;
}

CALL(mmap_anonymous)
{
	void *made = mmap(NULL, 8192, MIX(PROT_READ, PROT_WRITE, PROT_EXEC),
			  PICK(MAP_PRIVATE, MAP_SHARED) | MAP_ANONYMOUS, -1, 0);

	return keep_memory(made) == MAP_FAILED ? -1 : 0;
}

CALL(mprotect)
{
	return mprotect(memory(), 4096, MIX(PROT_READ, PROT_WRITE, PROT_EXEC));
}

CALL(remap_file_pages)
{
	return syscall(SYS_remap_file_pages, memory(), 4096L, 0L, 0L, 0L);
}

CALL(personality)
{
	return personality(PICK(0, READ_IMPLIES_EXEC));
}
