// Rows of activations as integers (the arithmetic: int8/int8.h).
#include <string.h>

#include "int8/int8.h"
#include "vectors/vectors.h"

// A row in chunks. The last one is padded with zeros, if it needs that.
typedef struct {
  const float *x;
  size_t whole, chunks;
  float last[CHUNK];
} Row;

INLINE Row row_of(const float *x, size_t inputs) {
  Row row = {.x = x, .whole = inputs / CHUNK, .chunks = (inputs + CHUNK - 1) / CHUNK};
  memcpy(row.last, x + row.whole * CHUNK, inputs % CHUNK * sizeof *x);
  return row;
}

INLINE const float *chunk_of(const Row *row, size_t chunk) {
  return chunk < row->whole ? row->x + chunk * CHUNK : row->last;
}

INLINE uint32_t largest_magnitude(const Row *row) {
  Bits largest[4];
  for (int i = 0; i < 4; i++) largest[i] = bits_magnitude(lanes_all(0));
  for (size_t c = 0; c < row->chunks; c++) {
    const float *x = chunk_of(row, c);
    UNROLLED for (int i = 0; i < CHUNK / LANES; i++)
      largest[i % 4] = bits_max(largest[i % 4], bits_magnitude(lanes_load(x + i * LANES)));
  }
  return bits_largest(bits_max(bits_max(largest[0], largest[1]), bits_max(largest[2], largest[3])));
}

// The unit of a row, whose largest magnitude is `most` units. *inverse: units in 1, or 0 for a row that becomes zeros.
INLINE float find_unit(const Row *row, float most, float *inverse) {
  const uint32_t bits = largest_magnitude(row);
  const float amax = from_bits(bits);
  const bool finite = bits < 0x7f800000;
  *inverse = 0;
  if (!finite) return from_bits(0x7fc00000);
  if (amax < TINY) return 0;
  *inverse = most / amax;
  return amax / most;
}

#if defined(VECTORS_AVX512)

INLINE void chunk_digits(const float *x, float inverse, uint8_t flip, uint8_t *coarse, uint8_t *fine) {
  const __m512 factor = _mm512_set1_ps(inverse);
  const __m128i flips = _mm_set1_epi8((char)flip);
  for (int i = 0; i < 4; i++) {
    __m512 values = _mm512_loadu_ps(x + 16 * i);
    __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(values, factor), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 rest = _mm512_mul_ps(_mm512_fmsub_ps(values, factor, whole), _mm512_set1_ps(FINE_STEPS));
    __m128i high = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(whole));
    __m128i low = _mm512_cvtepi32_epi8(_mm512_cvt_roundps_epi32(rest, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((__m128i *)(coarse + 16 * i), _mm_xor_si128(high, flips));
    _mm_storeu_si128((__m128i *)(fine + 16 * i), _mm_xor_si128(low, flips));
  }
}

#elif defined(VECTORS_NEON)

// A small number plus this has no fraction: the sum is rounded to the nearest integer, and its lowest byte is that
// integer's. Faster than instructions that convert.
#define ROUNDER 0x1.8p23f

// The lowest bytes of 16 numbers.
INLINE uint8x16_t low_bytes(const float32x4_t *values) {
  uint16x8_t first = vuzp1q_u16(vreinterpretq_u16_f32(values[0]), vreinterpretq_u16_f32(values[1]));
  uint16x8_t second = vuzp1q_u16(vreinterpretq_u16_f32(values[2]), vreinterpretq_u16_f32(values[3]));
  return vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
}

INLINE void chunk_digits(const float *x, float inverse, uint8_t flip, uint8_t *coarse, uint8_t *fine) {
  const float32x4_t factor = vdupq_n_f32(inverse), rounder = vdupq_n_f32(ROUNDER);
  const uint8x16_t flips = vdupq_n_u8(flip);
  for (int i = 0; i < 4; i++) {
    float32x4_t high[4], low[4];
    for (int j = 0; j < 4; j++) {
      float32x4_t values = vld1q_f32(x + 16 * i + 4 * j);
      high[j] = vaddq_f32(vmulq_f32(values, factor), rounder);
      // whole - values * factor: the rest with its sign turned, which the factor turns back.
      float32x4_t rest = vfmsq_f32(vsubq_f32(high[j], rounder), values, factor);
      low[j] = vaddq_f32(vmulq_n_f32(rest, -FINE_STEPS), rounder);
    }
    vst1q_u8(coarse + 16 * i, veorq_u8(low_bytes(high), flips));
    vst1q_u8(fine + 16 * i, veorq_u8(low_bytes(low), flips));
  }
}

#endif

#if defined(VECTORS_AVX512) || defined(VECTORS_NEON)

INLINE float round_bytes(const float *x, size_t inputs, uint8_t flip, uint8_t *block, size_t row, size_t height) {
  const Row of = row_of(x, inputs);
  float inverse;
  const float unit = find_unit(&of, 127, &inverse);
  for (size_t c = 0; c < of.chunks; c++) {
    uint8_t *coarse = block + (2 * c * height + row) * CHUNK, *fine = coarse + height * CHUNK;
    if (inverse == 0) memset(coarse, flip, CHUNK), memset(fine, flip, CHUNK);
    else chunk_digits(chunk_of(&of, c), inverse, flip, coarse, fine);
  }
  return unit;
}

float int8_round_bytes(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height) {
  return round_bytes(x, inputs, 0, block, row, height);
}

float int8_round_flipped(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height) {
  return round_bytes(x, inputs, FLIP, block, row, height);
}

#endif

#if defined(VECTORS_AVX512) || defined(VECTORS_AVX2)

// 32 numbers.
INLINE void round_words(const float *x, Lanes factor, int16_t *words) {
#if defined(VECTORS_AVX512)
  for (int i = 0; i < 2; i++) {
    const __m512i whole = _mm512_cvtps_epi32(lanes_mul(lanes_load(x + 16 * i), factor));
    _mm256_storeu_si256((__m256i *)(words + 16 * i), _mm512_cvtepi32_epi16(whole));
  }
#else
  for (int i = 0; i < 2; i++) {
    const __m256i first = _mm256_cvtps_epi32(lanes_mul(lanes_load(x + 16 * i), factor));
    const __m256i second = _mm256_cvtps_epi32(lanes_mul(lanes_load(x + 16 * i + 8), factor));
    const __m256i mixed = _mm256_packs_epi32(first, second);  // in quarters: of the first, the second, the first ...
    _mm256_storeu_si256((__m256i *)(words + 16 * i), _mm256_permute4x64_epi64(mixed, _MM_SHUFFLE(3, 1, 2, 0)));
  }
#endif
}

float int8_round_words(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height) {
  const Row of = row_of(x, inputs);
  float inverse;
  const float unit = find_unit(&of, LARGEST_WORD, &inverse);
  for (size_t c = 0; c < of.chunks; c++) {
    int16_t *words = (int16_t *)block + (c * height + row) * CHUNK;
    if (inverse == 0) memset(words, 0, CHUNK * sizeof *words);
    else
      for (int i = 0; i < CHUNK; i += 32) round_words(chunk_of(&of, c) + i, lanes_all(inverse), words + i);
  }
  return unit;
}

#endif
