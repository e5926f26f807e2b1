// Softmax of one row as it goes, block by block, in base 2. A weight is e^score / 2^octave, where the octave is the highest
// score so far in factors of two, rounded to a whole one. So sums move to a higher octave without rounding.
#ifndef FLYWHEEL_ATTENTION_SOFTMAX_H
#define FLYWHEEL_ATTENTION_SOFTMAX_H

#include "kernels.h"
#include "vectors.h"

// log2(e) in single precision, and what that lacks.
#define LOG2E 1.44269502f
#define LOG2E_REST 1.92596303e-8f

// A score that gives the weight 0.
#define HIDDEN (-1e30f)

// Octave of a row that has seen nothing.
#define NO_OCTAVE (-3e30f)

// Weights of 2^-100 and less are 0: they change no sum, and no weight is subnormal.
#define LEAST_OCTAVE (-100.f)

// e^s = 2^(whole + rest) with |rest| <= 1/2. The rest comes from s itself, not from the rounded product.
INLINE F16 split_power(F16 s, F16 *rest) {
  const F16 whole = f16_round(f16_mul(s, f16_all(LOG2E)));
  *rest = f16_fma(s, f16_all(LOG2E_REST), f16_fms(s, f16_all(LOG2E), whole));
  return whole;
}

// (2^x - 1) / x for |x| <= 1/2, fitted for the smallest relative error of 2^x: 2e-9.
INLINE F16 power_slope(F16 x) {
  F16 y = f16_fma(f16_all(0.00015353360623180648f), x, f16_all(0.0013398874867325613f));
  y = f16_fma(y, x, f16_all(0.00961843736645945f));
  y = f16_fma(y, x, f16_all(0.05550332469692038f));
  y = f16_fma(y, x, f16_all(0.24022647913498443f));
  return f16_fma(y, x, f16_all(0.6931472028559719f));
}

// 2^x for a whole x <= 0, 0 below -126. (Sums of rows that have seen nothing are worth 0.)
INLINE float power_of_octaves(float x) {
  const union {
    uint32_t bits;
    float value;
  } power = {.bits = x > -127 ? (uint32_t)((int32_t)x + 127) << 23 : 0};
  return power.value;
}

// cap * tanh(s / cap). With y = e^(2|x|) - 1, tanh |x| = y / (y + 2), accurate for small x too.
INLINE F16 cap_scores(F16 s, float cap) {
  const F16 x = f16_div(s, f16_all(cap));
  // Beyond 20 it is 1.
  const F16 twice = f16_min(f16_sign(f16_add(x, x), f16_all(0)), f16_all(40));
  F16 rest;
  const F16 whole = split_power(twice, &rest), one = f16_all(1);
  const F16 power = f16_scale(one, whole, LEAST_OCTAVE);
  const F16 y = f16_fma(power, f16_mul(rest, power_slope(rest)), f16_sub(power, one));
  return f16_mul(f16_all(cap), f16_sign(f16_div(y, f16_add(y, f16_all(2))), x));
}

// Turns products of a query and a block's keys into weights. Positions from .. to - 1 of the block are seen; the weights of
// others below `end` (a multiple of 16) become 0. Updates the octave and the 16 sums of weights; returns by what the
// weighted sums of values so far are to be multiplied.
INLINE float softmax_block(const AttentionShape *shape, float *scores, size_t from, size_t to, size_t end, float *octave,
                           float *sums) {
  if (from >= to) {
    for (size_t i = 0; i < end; i += 16) f16_store(scores + i, f16_all(0));
    return 1;
  }
  F16 highest = f16_all(HIDDEN);
  for (size_t i = 0; i < end; i += 16) {
    F16 s = f16_mul(f16_load(scores + i), f16_all(shape->scale));
    if (shape->softcap != 0) s = cap_scores(s, shape->softcap);
    if (i < from || i + 16 > to) {
      const size_t first = from > i ? from - i : 0, last = to > i ? to - i : 0;
      s = f16_keep(s, first < 16 ? first : 16, last < 16 ? last : 16, HIDDEN);
    }
    f16_store(scores + i, s);
    highest = f16_max(highest, s);
  }
  float now = f16_first(f16_round(f16_all(f16_largest(highest) * LOG2E)));
  const float before = *octave;
  if (!(now > before)) now = before;
  const float keep = power_of_octaves(before - now);
  *octave = now;
  F16 sum = f16_load(sums);
  if (keep != 1) sum = f16_mul(sum, f16_all(keep));
  for (size_t i = 0; i < end; i += 16) {
    F16 rest;
    const F16 whole = split_power(f16_load(scores + i), &rest);
    const F16 power = f16_fma(power_slope(rest), rest, f16_all(1));
    const F16 weight = f16_scale(power, f16_sub(whole, f16_all(now)), LEAST_OCTAVE);
    f16_store(scores + i, weight);
    sum = f16_add(sum, weight);
  }
  f16_store(sums, sum);
  return keep;
}

#endif
