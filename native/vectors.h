// Vectors of floats: 16 lanes with AVX-512, 4 with NEON. Both do the same operations. What is summed over lanes is kept
// in 16 sums (lane i mod 16), so results have the same bits on both. Include after the target is set (see
// attention-avx512.c).
#ifndef FLYWHEEL_VECTORS_H
#define FLYWHEEL_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")

// The largest number of two bytes.
#define LARGEST_HALF 65504.f

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 16
typedef __m512 Lanes;

INLINE Lanes lanes_all(float x) { return _mm512_set1_ps(x); }
INLINE Lanes lanes_load(const float *from) { return _mm512_loadu_ps(from); }
INLINE void lanes_store(float *to, Lanes x) { _mm512_storeu_ps(to, x); }
INLINE Lanes lanes_add(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
INLINE Lanes lanes_sub(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
INLINE Lanes lanes_mul(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
INLINE Lanes lanes_div(Lanes a, Lanes b) { return _mm512_div_ps(a, b); }
INLINE Lanes lanes_max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
INLINE Lanes lanes_min(Lanes a, Lanes b) { return _mm512_min_ps(a, b); }
INLINE float lanes_first(Lanes x) { return _mm512_cvtss_f32(x); }
INLINE float lanes_largest(Lanes x) { return _mm512_reduce_max_ps(x); }

// The first lanes, zero in the others. 0 < count < LANES.
INLINE Lanes lanes_load_some(const float *from, size_t count) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}

// Numbers of two bytes: widened exactly, or rounded to the nearest, the even one of two. Beyond ±65504 they become that.
// NaN stays NaN.
INLINE Lanes lanes_widen(const uint16_t *from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
INLINE void lanes_narrow(uint16_t *to, Lanes x) {
  // Of a NaN and a number, the second one is taken.
  const Lanes limited = _mm512_min_ps(lanes_all(LARGEST_HALF), _mm512_max_ps(lanes_all(-LARGEST_HALF), x));
  _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(limited, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// c + a * b and c - a * b, rounded once.
INLINE Lanes lanes_plus(Lanes c, Lanes a, Lanes b) { return _mm512_fmadd_ps(a, b, c); }
INLINE Lanes lanes_minus(Lanes c, Lanes a, Lanes b) { return _mm512_fnmadd_ps(a, b, c); }

// The nearest whole number, the even one of two.
INLINE Lanes lanes_round(Lanes x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

// x * 2^whole where whole > least, otherwise 0. least >= -125, whole <= 100, x near 1. NaN stays NaN.
INLINE Lanes lanes_scale(Lanes x, Lanes whole, float least) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(whole, lanes_all(least), _CMP_NLE_UQ), x, whole);
}

// The size of `of` with the sign of `sign`.
INLINE Lanes lanes_sign(Lanes of, Lanes sign) {
  const __m512i mask = _mm512_set1_epi32(INT32_MIN), signs = _mm512_and_si512(mask, _mm512_castps_si512(sign));
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_andnot_si512(mask, _mm512_castps_si512(of)), signs));
}

// x in lanes from .. to - 1, `other` in the rest. from <= to <= LANES.
INLINE Lanes lanes_keep(Lanes x, uint32_t from, uint32_t to, float other) {
  return _mm512_mask_blend_ps((__mmask16)((1u << to) - (1u << from)), lanes_all(other), x);
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define LANES 4
typedef float32x4_t Lanes;

INLINE Lanes lanes_all(float x) { return vdupq_n_f32(x); }
INLINE Lanes lanes_load(const float *from) { return vld1q_f32(from); }
INLINE void lanes_store(float *to, Lanes x) { vst1q_f32(to, x); }
INLINE Lanes lanes_add(Lanes a, Lanes b) { return vaddq_f32(a, b); }
INLINE Lanes lanes_sub(Lanes a, Lanes b) { return vsubq_f32(a, b); }
INLINE Lanes lanes_mul(Lanes a, Lanes b) { return vmulq_f32(a, b); }
INLINE Lanes lanes_div(Lanes a, Lanes b) { return vdivq_f32(a, b); }
INLINE Lanes lanes_max(Lanes a, Lanes b) { return vmaxq_f32(a, b); }
INLINE Lanes lanes_min(Lanes a, Lanes b) { return vminq_f32(a, b); }
INLINE float lanes_first(Lanes x) { return vgetq_lane_f32(x, 0); }
INLINE float lanes_largest(Lanes x) { return vmaxvq_f32(x); }

// The first lanes, zero in the others. 0 < count < LANES.
INLINE Lanes lanes_load_some(const float *from, size_t count) {
  Lanes x = vsetq_lane_f32(from[0], vdupq_n_f32(0), 0);
  if (count > 1) x = vsetq_lane_f32(from[1], x, 1);
  if (count > 2) x = vsetq_lane_f32(from[2], x, 2);
  return x;
}

// Numbers of two bytes: widened exactly, or rounded to the nearest, the even one of two. Beyond ±65504 they become that.
// NaN stays NaN.
INLINE Lanes lanes_widen(const uint16_t *from) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))); }
INLINE void lanes_narrow(uint16_t *to, Lanes x) {
  const Lanes limited = vminq_f32(vmaxq_f32(x, lanes_all(-LARGEST_HALF)), lanes_all(LARGEST_HALF));
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(limited)));
}

// c + a * b and c - a * b, rounded once.
INLINE Lanes lanes_plus(Lanes c, Lanes a, Lanes b) { return vfmaq_f32(c, a, b); }
INLINE Lanes lanes_minus(Lanes c, Lanes a, Lanes b) { return vfmsq_f32(c, a, b); }

// The nearest whole number, the even one of two.
INLINE Lanes lanes_round(Lanes x) { return vrndnq_f32(x); }

// x * 2^whole where whole > least, otherwise 0. least >= -125, whole <= 100, x near 1. NaN stays NaN.
INLINE Lanes lanes_scale(Lanes x, Lanes whole, float least) {
  // whole * 2^23 is added to the exponent's bits.
  const int32x4_t scaled = vaddq_s32(vreinterpretq_s32_f32(x), vcvtq_n_s32_f32(whole, 23));
  return vreinterpretq_f32_s32(vbicq_s32(scaled, vreinterpretq_s32_u32(vcleq_f32(whole, vdupq_n_f32(least)))));
}

// The size of `of` with the sign of `sign`.
INLINE Lanes lanes_sign(Lanes of, Lanes sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, of); }

// x in lanes from .. to - 1, `other` in the rest. from <= to <= LANES.
INLINE Lanes lanes_keep(Lanes x, uint32_t from, uint32_t to, float other) {
  static const uint32_t four[4] = {0, 1, 2, 3};
  // Lanes before `from` wrap round to large numbers.
  const uint32x4_t kept = vcltq_u32(vsubq_u32(vld1q_u32(four), vdupq_n_u32(from)), vdupq_n_u32(to - from));
  return vbslq_f32(kept, x, vdupq_n_f32(other));
}

#endif

// Vectors of 16 lanes together.
#define PARTS (16 / LANES)

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
