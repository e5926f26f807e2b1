// Numbers of two bytes, as a cache may hold keys and values: IEEE 754's binary16. Their bits are the same on all
// processors.
#ifndef FLYWHEEL_HALF_H
#define FLYWHEEL_HALF_H

#include "kernels.h"

// rows/half-lanes.c: rounds to the nearest, the even one of two. Numbers beyond ±65504 become that; NaN stays NaN.
void halves_narrow(const float *from, size_t count, uint16_t *to);

// rows/half-lanes.c: exact.
void halves_widen(const uint16_t *from, size_t count, float *to);

// rows/half.c: y = x as a half would hold it. y may be x.
void halves_round(const float *x, size_t count, float *y, const Crew *crew);

#endif
