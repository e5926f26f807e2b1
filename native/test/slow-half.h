// Numbers of two bytes in plain C, for comparison.
#ifndef FLYWHEEL_SLOW_HALF_H
#define FLYWHEEL_SLOW_HALF_H

#include <math.h>
#include <stdint.h>

// The half nearest to x, the even one of two; beyond the largest, that.
static inline float slow_half(float x) {
  if (isnan(x) || x == 0) return x;
  if (fabsf(x) >= 65504) return copysignf(65504, x);
  const int exponent = ilogbf(x) < -14 ? -14 : ilogbf(x);
  const double step = ldexp(1, exponent - 10);
  return (float)copysign(nearbyint((double)x / step) * step, (double)x);
}

static inline float half_value(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);
  return (float)(half >> 15 ? -size : size);
}

#endif
