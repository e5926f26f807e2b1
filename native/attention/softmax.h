// Softmax of one row as it goes, block by block, in base 2. A weight is e^score / 2^octave, where the octave is the
// highest score so far in factors of two, rounded to a whole one. So sums move to a higher octave without rounding.
#ifndef FLYWHEEL_ATTENTION_SOFTMAX_H
#define FLYWHEEL_ATTENTION_SOFTMAX_H

#include "kernels.h"
#include "vectors/vectors.h"

// log2(e) in single precision, and what that lacks.
#define LOG2E 1.44269502f
#define LOG2E_REST 1.92596303e-8f

// A score that gives the weight 0.
#define HIDDEN (-1e30f)

// Octave of a row that has seen nothing.
#define NO_OCTAVE (-3e30f)

// Weights of 2^-100 and less are 0: they change no sum, and no weight is subnormal.
#define LEAST_OCTAVE (-100.f)

// e^s = 2^(whole - excess) with |excess| <= 1/2. The excess comes from s itself, not from the rounded product.
INLINE Lanes split_power(Lanes s, Lanes *excess) {
  const Lanes whole = lanes_round(lanes_mul(s, lanes_all(LOG2E)));
  *excess = lanes_minus(lanes_minus(whole, s, lanes_all(LOG2E)), s, lanes_all(LOG2E_REST));
  return whole;
}

// (1 - 2^-x) / x for |x| <= 1/2, fitted for the smallest relative error of 2^-x: 2e-9.
INLINE Lanes power_slope(Lanes x) {
  const Lanes square = lanes_mul(x, x);
  const Lanes high = lanes_plus(lanes_all(0.0013398874867325613f), x, lanes_all(-0.00015353360623180648f));
  const Lanes middle = lanes_plus(lanes_all(0.05550332469692038f), x, lanes_all(-0.00961843736645945f));
  const Lanes low = lanes_plus(lanes_all(0.6931472028559719f), x, lanes_all(-0.24022647913498443f));
  return lanes_plus(low, lanes_plus(middle, high, square), square);
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
INLINE Lanes cap_scores(Lanes s, float cap) {
  const Lanes x = lanes_div(s, lanes_all(cap));
  // Beyond 20 it is 1.
  const Lanes twice = lanes_min(lanes_sign(lanes_add(x, x), lanes_all(0)), lanes_all(40));
  Lanes excess;
  const Lanes whole = split_power(twice, &excess), one = lanes_all(1);
  const Lanes power = lanes_scale(one, whole, LEAST_OCTAVE);
  const Lanes y = lanes_minus(lanes_sub(power, one), power, lanes_mul(excess, power_slope(excess)));
  return lanes_mul(lanes_all(cap), lanes_sign(lanes_div(y, lanes_add(y, lanes_all(2))), x));
}

// What few blocks need: scaled scores with a cap, those outside from .. to - 1 hidden.
static __attribute__((noinline)) void adjust_scores(const AttentionShape *shape, float *scores, size_t from, size_t to,
                                                    size_t end) {
  for (size_t i = 0; i < end; i += LANES) {
    const size_t first = from > i ? from - i : 0, last = to > i ? to - i : 0;
    Lanes s = lanes_mul(lanes_load(scores + i), lanes_all(shape->scale));
    if (shape->softcap != 0) s = cap_scores(s, shape->softcap);
    lanes_store(scores + i, lanes_keep(s, first < LANES ? first : LANES, last < LANES ? last : LANES, HIDDEN));
  }
}

// Turns products of a query and a block's keys into weights. Positions from .. to - 1 of the block are seen; the
// weights of others below `end` (a multiple of 16) become 0. Updates the octave and the 16 sums of weights; returns by
// what the weighted sums of values so far are to be multiplied.
INLINE float softmax_block(const AttentionShape *shape, float *scores, size_t from, size_t to, size_t end,
                           float *octave, float *sums) {
  if (from >= to) {
    for (size_t i = 0; i < end; i += LANES) lanes_store(scores + i, lanes_all(0));
    return 1;
  }
  float scale = shape->scale;
  if (from || to < end || shape->softcap != 0) {
    adjust_scores(shape, scores, from, to, end);
    scale = 1;
  }
  Lanes highest[PARTS];
  UNROLLED for (size_t p = 0; p < PARTS; p++) highest[p] = lanes_all(HIDDEN);
  for (size_t i = 0; i < end; i += 16) {
    UNROLLED for (size_t p = 0; p < PARTS; p++) {
      const Lanes s = lanes_mul(lanes_load(scores + i + p * LANES), lanes_all(scale));
      lanes_store(scores + i + p * LANES, s);
      highest[p] = lanes_max(highest[p], s);
    }
  }
  UNROLLED for (size_t p = 1; p < PARTS; p++) highest[0] = lanes_max(highest[0], highest[p]);
  float now = lanes_first(lanes_round(lanes_all(lanes_largest(highest[0]) * LOG2E)));
  const float before = *octave;
  if (!(now > before)) now = before;
  const float keep = power_of_octaves(before - now);
  *octave = now;
  Lanes sum[PARTS];
  UNROLLED for (size_t p = 0; p < PARTS; p++) sum[p] = lanes_mul(lanes_load(sums + p * LANES), lanes_all(keep));
  for (size_t i = 0; i < end; i += 16) {
    UNROLLED for (size_t p = 0; p < PARTS; p++) {
      Lanes excess;
      const Lanes whole = split_power(lanes_load(scores + i + p * LANES), &excess);
      const Lanes power = lanes_minus(lanes_all(1), power_slope(excess), excess);
      const Lanes weight = lanes_scale(power, lanes_sub(whole, lanes_all(now)), LEAST_OCTAVE);
      lanes_store(scores + i + p * LANES, weight);
      sum[p] = lanes_add(sum[p], weight);
    }
  }
  UNROLLED for (size_t p = 0; p < PARTS; p++) lanes_store(sums + p * LANES, sum[p]);
  return keep;
}

#endif
