// Pages of 2 MiB: long memory that is read again and again needs fewer address translations on them.
#ifndef FLYWHEEL_HUGE_PAGES_H
#define FLYWHEEL_HUGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

// Asks the system for them, for all whole ones inside this memory, before it is written. The system may decline.
static inline void use_huge_pages(void *memory, size_t bytes) {
  const uintptr_t first = ((uintptr_t)memory + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  const uintptr_t end = ((uintptr_t)memory + bytes) / HUGE_PAGE * HUGE_PAGE;
  if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
}

#endif
