// The vectors of vectors/vectors.h with AVX2, FMA and F16C: 8 lanes.
#ifndef FLYWHEEL_VECTORS_AVX2_H
#define FLYWHEEL_VECTORS_AVX2_H

#include <immintrin.h>

#define LANES 8
typedef __m256 Lanes;

INLINE Lanes lanes_all(float x) { return _mm256_set1_ps(x); }
INLINE Lanes lanes_load(const float *from) { return _mm256_loadu_ps(from); }
INLINE void lanes_store(float *to, Lanes x) { _mm256_storeu_ps(to, x); }
INLINE Lanes lanes_add(Lanes a, Lanes b) { return _mm256_add_ps(a, b); }
INLINE Lanes lanes_sub(Lanes a, Lanes b) { return _mm256_sub_ps(a, b); }
INLINE Lanes lanes_mul(Lanes a, Lanes b) { return _mm256_mul_ps(a, b); }
INLINE Lanes lanes_div(Lanes a, Lanes b) { return _mm256_div_ps(a, b); }
INLINE Lanes lanes_max(Lanes a, Lanes b) { return _mm256_max_ps(a, b); }
INLINE Lanes lanes_min(Lanes a, Lanes b) { return _mm256_min_ps(a, b); }
INLINE float lanes_first(Lanes x) { return _mm256_cvtss_f32(x); }

INLINE float lanes_largest(Lanes x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

INLINE float lanes_sum(Lanes x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE Lanes lanes_load_some(const float *from, size_t count) {
  static const int32_t chosen[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_maskload_ps(from, _mm256_loadu_si256((const __m256i *)(chosen + 8 - count)));
}

INLINE Lanes lanes_widen(const uint16_t *from) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)); }
INLINE void lanes_narrow(uint16_t *to, Lanes x) {
  // Of a NaN and a number, the second one is taken.
  const Lanes limited = _mm256_min_ps(lanes_all(LARGEST_HALF), _mm256_max_ps(lanes_all(-LARGEST_HALF), x));
  _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(limited, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

INLINE Lanes lanes_plus(Lanes c, Lanes a, Lanes b) { return _mm256_fmadd_ps(a, b, c); }
INLINE Lanes lanes_minus(Lanes c, Lanes a, Lanes b) { return _mm256_fnmadd_ps(a, b, c); }

INLINE Lanes lanes_round(Lanes x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

INLINE Lanes lanes_scale(Lanes x, Lanes whole, float least) {
  // whole * 2^23 is added to the exponent's bits.
  const __m256i powers = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
  const Lanes scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), powers));
  return _mm256_and_ps(scaled, _mm256_cmp_ps(whole, lanes_all(least), _CMP_NLE_UQ));
}

INLINE Lanes lanes_sign(Lanes of, Lanes sign) {
  const Lanes mask = lanes_all(-0.f);
  return _mm256_or_ps(_mm256_andnot_ps(mask, of), _mm256_and_ps(mask, sign));
}

INLINE Lanes lanes_by_sign(Lanes x, Lanes negative, Lanes other) { return _mm256_blendv_ps(other, negative, x); }

INLINE Lanes lanes_keep(Lanes x, uint32_t from, uint32_t to, float other) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i early = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)from), lane);
  const __m256i kept = _mm256_andnot_si256(early, _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)to), lane));
  return _mm256_blendv_ps(lanes_all(other), x, _mm256_castsi256_ps(kept));
}

INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

typedef __m256i Bits;

INLINE Bits bits_magnitude(Lanes x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(INT32_MAX));
}
INLINE Bits bits_max(Bits a, Bits b) { return _mm256_max_epu32(a, b); }
INLINE uint32_t bits_largest(Bits x) {
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 3, 0, 1))));
}

#endif
