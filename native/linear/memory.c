// Memory of packed weights. Maps share large slabs that lie on huge pages where the system gives some: a model's
// weights pass through the processor at every step, and large pages need fewer address translations. A slab goes back
// to the system when all its maps are freed.

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "huge-pages.h"
#include "linear/parts.h"

#define SLAB ((size_t)32 << 20)

struct Slab {
  uint8_t *mapped, *bytes;  // `bytes` begins a huge page inside `mapped`
  size_t size, used;
  size_t maps;  // that lie in it
};

static atomic_flag busy = ATOMIC_FLAG_INIT;
static Slab *open_slab;  // where small maps go

static Slab *new_slab(size_t size) {
  Slab *slab = malloc(sizeof *slab);
  if (slab == NULL) return NULL;
  uint8_t *mapped = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    free(slab);
    return NULL;
  }
  uint8_t *bytes = mapped + (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
  use_huge_pages(bytes, size);
  *slab = (Slab){.mapped = mapped, .bytes = bytes, .size = size};
  return slab;
}

static void end_slab(Slab *slab) {
  munmap(slab->mapped, slab->size + HUGE_PAGE);
  free(slab);
}

// The slab for a map of so many bytes. A large map gets its own.
static Slab *slab_for(size_t bytes) {
  if (bytes > SLAB / 4) return new_slab((bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (open_slab == NULL || open_slab->size - open_slab->used < bytes) {
    Slab *slab = new_slab(SLAB);
    if (slab == NULL) return NULL;
    open_slab = slab;  // a full one lives until its maps are freed
  }
  return open_slab;
}

void *linear_memory_take(size_t bytes, Slab **owner) {
  bytes = (bytes + 63) / 64 * 64;
  while (atomic_flag_test_and_set(&busy)) continue;
  Slab *slab = slab_for(bytes);
  uint8_t *memory = NULL;
  if (slab != NULL) {
    memory = slab->bytes + slab->used;
    slab->used += bytes;
    slab->maps++;
  }
  atomic_flag_clear(&busy);
  *owner = slab;
  return memory;
}

void linear_memory_give(Slab *slab) {
  while (atomic_flag_test_and_set(&busy)) continue;
  if (--slab->maps == 0) {
    if (slab == open_slab) open_slab = NULL;
    end_slab(slab);
  }
  atomic_flag_clear(&busy);
}
