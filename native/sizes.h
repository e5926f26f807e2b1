// Arithmetic of sizes.
#ifndef FLYWHEEL_SIZES_H
#define FLYWHEEL_SIZES_H

#include <stddef.h>

static inline size_t at_most(size_t value, size_t limit) { return value < limit ? value : limit; }

static inline size_t at_least(size_t value, size_t limit) { return value > limit ? value : limit; }

static inline size_t divide_up(size_t whole, size_t piece) { return (whole + piece - 1) / piece; }

#endif
