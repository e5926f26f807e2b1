// The vectors of vectors/vectors.h with AVX-512: 16 lanes.
#ifndef FLYWHEEL_VECTORS_AVX512_H
#define FLYWHEEL_VECTORS_AVX512_H

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

INLINE float lanes_sum(Lanes x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE Lanes lanes_load_some(const float *from, size_t count) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}

INLINE Lanes lanes_widen(const uint16_t *from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
INLINE void lanes_narrow(uint16_t *to, Lanes x) {
  // Of a NaN and a number, the second one is taken.
  const Lanes limited = _mm512_min_ps(lanes_all(LARGEST_HALF), _mm512_max_ps(lanes_all(-LARGEST_HALF), x));
  _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(limited, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

INLINE Lanes lanes_plus(Lanes c, Lanes a, Lanes b) { return _mm512_fmadd_ps(a, b, c); }
INLINE Lanes lanes_minus(Lanes c, Lanes a, Lanes b) { return _mm512_fnmadd_ps(a, b, c); }

INLINE Lanes lanes_round(Lanes x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

INLINE Lanes lanes_scale(Lanes x, Lanes whole, float least) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(whole, lanes_all(least), _CMP_NLE_UQ), x, whole);
}

INLINE Lanes lanes_sign(Lanes of, Lanes sign) {
  const __m512i mask = _mm512_set1_epi32(INT32_MIN), signs = _mm512_and_si512(mask, _mm512_castps_si512(sign));
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_andnot_si512(mask, _mm512_castps_si512(of)), signs));
}

INLINE Lanes lanes_by_sign(Lanes x, Lanes negative, Lanes other) {
  return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), other, negative);
}

INLINE Lanes lanes_keep(Lanes x, uint32_t from, uint32_t to, float other) {
  return _mm512_mask_blend_ps((__mmask16)((1u << to) - (1u << from)), lanes_all(other), x);
}

INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

typedef __m512i Bits;

INLINE Bits bits_magnitude(Lanes x) { return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MAX)); }
INLINE Bits bits_max(Bits a, Bits b) { return _mm512_max_epu32(a, b); }
INLINE uint32_t bits_largest(Bits x) { return _mm512_reduce_max_epu32(x); }

#endif
