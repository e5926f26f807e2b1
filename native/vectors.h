// Sixteen floats at once: one register with AVX-512, four with NEON. Both do the same operations in the same order, so
// results have the same bits on both. Include after the target is set (see attention-avx512.c).
#ifndef FLYWHEEL_VECTORS_H
#define FLYWHEEL_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512 F16;

INLINE F16 f16_load(const float *from) { return _mm512_loadu_ps(from); }
INLINE void f16_store(float *to, F16 x) { _mm512_storeu_ps(to, x); }
INLINE F16 f16_all(float x) { return _mm512_set1_ps(x); }
INLINE F16 f16_add(F16 a, F16 b) { return _mm512_add_ps(a, b); }
INLINE F16 f16_sub(F16 a, F16 b) { return _mm512_sub_ps(a, b); }
INLINE F16 f16_mul(F16 a, F16 b) { return _mm512_mul_ps(a, b); }
INLINE F16 f16_div(F16 a, F16 b) { return _mm512_div_ps(a, b); }
INLINE F16 f16_max(F16 a, F16 b) { return _mm512_max_ps(a, b); }
INLINE F16 f16_min(F16 a, F16 b) { return _mm512_min_ps(a, b); }

// a * b + c, rounded once.
INLINE F16 f16_fma(F16 a, F16 b, F16 c) { return _mm512_fmadd_ps(a, b, c); }

// a * b - c, rounded once.
INLINE F16 f16_fms(F16 a, F16 b, F16 c) { return _mm512_fmsub_ps(a, b, c); }

// The nearest whole number, the even one of two.
INLINE F16 f16_round(F16 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

// x * 2^whole where whole > least, otherwise 0. least >= -125, whole <= 126, x near 1. NaN stays NaN.
INLINE F16 f16_scale(F16 x, F16 whole, float least) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(whole, f16_all(least), _CMP_NLE_UQ), x, whole);
}

// The size of `of` with the sign of `sign`.
INLINE F16 f16_sign(F16 of, F16 sign) {
  const __m512i mask = _mm512_set1_epi32(INT32_MIN);
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_andnot_si512(mask, _mm512_castps_si512(of)), _mm512_and_si512(mask, _mm512_castps_si512(sign))));
}

// x in lanes from .. to - 1, `other` in the rest. 0 <= from <= to <= 16.
INLINE F16 f16_keep(F16 x, unsigned from, unsigned to, float other) {
  const __mmask16 mask = (__mmask16)((1u << to) - (1u << from));
  return _mm512_mask_blend_ps(mask, f16_all(other), x);
}

// The sum of lanes i and i + 8, of these i and i + 4, i + 2, i + 1.
INLINE float f16_sum(F16 x) {
  const F16 eight = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  const __m128 low = _mm512_castps512_ps128(eight), high = _mm512_extractf32x4_ps(eight, 1);
  const __m128 four = _mm_add_ps(low, high), two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

INLINE float f16_largest(F16 x) { return _mm512_reduce_max_ps(x); }
INLINE float f16_first(F16 x) { return _mm512_cvtss_f32(x); }

#elif defined(__aarch64__)
#include <arm_neon.h>

typedef struct {
  float32x4_t part[4];
} F16;

#define EACH_PART(i) _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++)

INLINE F16 f16_load(const float *from) {
  return (F16){{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
}
INLINE void f16_store(float *to, F16 x) { EACH_PART(i) vst1q_f32(to + 4 * i, x.part[i]); }
INLINE F16 f16_all(float x) {
  const float32x4_t part = vdupq_n_f32(x);
  return (F16){{part, part, part, part}};
}

#define F16_OF_TWO(name, operation) \
  INLINE F16 name(F16 a, F16 b) { \
    EACH_PART(i) a.part[i] = operation(a.part[i], b.part[i]); \
    return a; \
  }
F16_OF_TWO(f16_add, vaddq_f32)
F16_OF_TWO(f16_sub, vsubq_f32)
F16_OF_TWO(f16_mul, vmulq_f32)
F16_OF_TWO(f16_div, vdivq_f32)
F16_OF_TWO(f16_max, vmaxq_f32)
F16_OF_TWO(f16_min, vminq_f32)

// a * b + c, rounded once.
INLINE F16 f16_fma(F16 a, F16 b, F16 c) {
  EACH_PART(i) c.part[i] = vfmaq_f32(c.part[i], a.part[i], b.part[i]);
  return c;
}

// a * b - c, rounded once.
INLINE F16 f16_fms(F16 a, F16 b, F16 c) {
  EACH_PART(i) c.part[i] = vfmaq_f32(vnegq_f32(c.part[i]), a.part[i], b.part[i]);
  return c;
}

// The nearest whole number, the even one of two.
INLINE F16 f16_round(F16 x) {
  EACH_PART(i) x.part[i] = vrndnq_f32(x.part[i]);
  return x;
}

// x * 2^whole where whole > least, otherwise 0. least >= -125, whole <= 126, x near 1. NaN stays NaN.
INLINE F16 f16_scale(F16 x, F16 whole, float least) {
  EACH_PART(i) {
    const int32x4_t octaves = vshlq_n_s32(vcvtq_s32_f32(whole.part[i]), 23);
    const int32x4_t scaled = vaddq_s32(vreinterpretq_s32_f32(x.part[i]), octaves);
    x.part[i] = vreinterpretq_f32_s32(
        vbicq_s32(scaled, vreinterpretq_s32_u32(vcleq_f32(whole.part[i], vdupq_n_f32(least)))));
  }
  return x;
}

// The size of `of` with the sign of `sign`.
INLINE F16 f16_sign(F16 of, F16 sign) {
  EACH_PART(i) of.part[i] = vbslq_f32(vdupq_n_u32(0x80000000u), sign.part[i], of.part[i]);
  return of;
}

// x in lanes from .. to - 1, `other` in the rest. 0 <= from <= to <= 16.
INLINE F16 f16_keep(F16 x, unsigned from, unsigned to, float other) {
  static const uint32_t four[4] = {0, 1, 2, 3};
  const uint32x4_t first = vsubq_u32(vld1q_u32(four), vdupq_n_u32(from)), count = vdupq_n_u32(to - from);
  EACH_PART(i) {
    // Lanes before `from` wrap round to large numbers.
    const uint32x4_t kept = vcltq_u32(vaddq_u32(first, vdupq_n_u32(4 * (uint32_t)i)), count);
    x.part[i] = vbslq_f32(kept, x.part[i], vdupq_n_f32(other));
  }
  return x;
}

// The sum of lanes i and i + 8, of these i and i + 4, i + 2, i + 1.
INLINE float f16_sum(F16 x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.part[0], x.part[2]), vaddq_f32(x.part[1], x.part[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

INLINE float f16_largest(F16 x) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.part[0], x.part[1]), vmaxq_f32(x.part[2], x.part[3])));
}
INLINE float f16_first(F16 x) { return vgetq_lane_f32(x.part[0], 0); }

#endif

// Any number of lanes of `to`, up to 16.
INLINE void f16_store_some(float *to, F16 x, size_t lanes) {
  if (lanes >= 16) {
    f16_store(to, x);
    return;
  }
  float all[16];
  f16_store(all, x);
  for (size_t i = 0; i < lanes; i++) to[i] = all[i];
}

#endif
