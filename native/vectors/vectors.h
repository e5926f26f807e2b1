// Vectors of floats: 16 lanes with AVX-512, 8 with AVX2, 4 with NEON. All do the same operations. What is summed over lanes is
// kept in 16 sums (lane i mod 16), so results have the same bits on all. For files that end in -lanes.c, which are compiled
// with these instructions.
#ifndef FLYWHEEL_VECTORS_H
#define FLYWHEEL_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")

// The largest number of two bytes.
#define LARGEST_HALF 65504.f

// What each of the included files offers, in the instructions of the target that build.mjs names:
//   lanes_load_some(from, count)   the first lanes, zero in the others; 0 < count < LANES
//   lanes_sum(x)                   added as a tree: lanes 8 apart, then 4, 2 and 1 apart, as far as there are so many
//   lanes_widen, lanes_narrow      numbers of two bytes: widened exactly, or rounded to the nearest, the even one of two; beyond
//                                  ±65504 they become that; NaN stays NaN
//   lanes_plus(c, a, b)            c + a * b, rounded once; lanes_minus: c - a * b
//   lanes_round(x)                 the nearest whole number, the even one of two
//   lanes_scale(x, whole, least)   x * 2^whole where whole > least, otherwise 0; least >= -125, whole <= 100, x near 1; NaN
//                                  stays NaN
//   lanes_sign(of, sign)           the size of `of` with the sign of `sign`
//   lanes_by_sign(x, a, b)         a where the sign of x is negative, else b
//   lanes_keep(x, from, to, other) x in lanes from .. to - 1, `other` in the rest; from <= to <= LANES
//   square_root(x)                 of one number: the library's function is another one on every system
//   Bits                           the bits of floats as integers; without the sign (bits_magnitude) they order as the
//                                  floats do, and infinity and NaN are above finite numbers
#if defined(VECTORS_AVX512)
#include "vectors/avx512.h"
#elif defined(VECTORS_AVX2)
#include "vectors/avx2.h"
#elif defined(VECTORS_NEON)
#include "vectors/neon.h"
#endif

// Vectors of 16 lanes together.
#define PARTS (16 / LANES)

INLINE float from_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// The first lanes.
INLINE void lanes_store_some(float *to, Lanes x, size_t count) {
  if (count >= LANES) {
    lanes_store(to, x);
    return;
  }
  float all[LANES];
  lanes_store(all, x);
  for (size_t i = 0; i < count; i++) to[i] = all[i];
}

// The first lanes, zero in the others. count < LANES.
INLINE Lanes lanes_widen_some(const uint16_t *from, size_t count) {
  uint16_t all[LANES] = {0};
  for (size_t i = 0; i < count; i++) all[i] = from[i];
  return lanes_widen(all);
}

// The first lanes. count < LANES.
INLINE void lanes_narrow_some(uint16_t *to, Lanes x, size_t count) {
  uint16_t all[LANES];
  lanes_narrow(all, x);
  for (size_t i = 0; i < count; i++) to[i] = all[i];
}

// Of 16 sums: i and i + 8, of these i and i + 4, i + 2, i + 1.
INLINE float sum_of_sixteen(const float *x) {
  float sums[8];
  for (size_t i = 0; i < 8; i++) sums[i] = x[i] + x[i + 8];
  for (size_t i = 0; i < 4; i++) sums[i] += sums[i + 4];
  for (size_t i = 0; i < 2; i++) sums[i] += sums[i + 2];
  return sums[0] + sums[1];
}

#endif
