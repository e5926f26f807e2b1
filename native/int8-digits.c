// Rows of activations as two digits of one byte (the arithmetic: int8-parts.h). The largest magnitude of a row is found
// on the bits of the numbers: without the sign they order as integers, and infinity and NaN are above finite numbers.

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <string.h>

#include "int8-parts.h"

#if defined(__x86_64__)

typedef struct {
  __m512i lanes[4];
} Largest;

static inline void add_chunk(Largest *largest, const float *x) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int i = 0; i < 4; i++) {
    __m512i bits = _mm512_and_si512(_mm512_loadu_si512(x + 16 * i), magnitude);
    largest->lanes[i] = _mm512_max_epu32(largest->lanes[i], bits);
  }
}

static inline uint32_t largest_bits(const Largest *largest) {
  const __m512i *lanes = largest->lanes;
  __m512i first = _mm512_max_epu32(lanes[0], lanes[1]), second = _mm512_max_epu32(lanes[2], lanes[3]);
  return _mm512_reduce_max_epu32(_mm512_max_epu32(first, second));
}

static inline void chunk_digits(const float *x, float inverse, uint8_t flip, uint8_t *coarse, uint8_t *fine) {
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

#elif defined(__aarch64__)

typedef struct {
  uint32x4_t lanes[4];
} Largest;

static inline void add_chunk(Largest *largest, const float *x) {
  const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
  for (int i = 0; i < 16; i++)
    largest->lanes[i % 4] =
        vmaxq_u32(largest->lanes[i % 4], vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + 4 * i)), magnitude));
}

static inline uint32_t largest_bits(const Largest *largest) {
  const uint32x4_t *lanes = largest->lanes;
  return vmaxvq_u32(vmaxq_u32(vmaxq_u32(lanes[0], lanes[1]), vmaxq_u32(lanes[2], lanes[3])));
}

// A small number plus this has no fraction: the sum is rounded to the nearest integer, and its lowest byte is that
// integer's. Faster than instructions that convert.
#define ROUNDER 0x1.8p23f

// The lowest bytes of 16 numbers.
static inline uint8x16_t low_bytes(const float32x4_t *values) {
  uint16x8_t first = vuzp1q_u16(vreinterpretq_u16_f32(values[0]), vreinterpretq_u16_f32(values[1]));
  uint16x8_t second = vuzp1q_u16(vreinterpretq_u16_f32(values[2]), vreinterpretq_u16_f32(values[3]));
  return vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
}

static inline void chunk_digits(const float *x, float inverse, uint8_t flip, uint8_t *coarse, uint8_t *fine) {
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

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float int8_row_digits(const float *x, size_t inputs, uint8_t flip, uint8_t *bytes, size_t stride) {
  size_t whole = inputs / CHUNK, rest = inputs % CHUNK, chunks = whole + (rest != 0);
  float last[CHUNK] = {0};  // the last chunk, padded
  memcpy(last, x + whole * CHUNK, rest * sizeof *x);

  Largest largest;
  memset(&largest, 0, sizeof largest);
  for (size_t c = 0; c < whole; c++) add_chunk(&largest, x + c * CHUNK);
  if (rest != 0) add_chunk(&largest, last);
  uint32_t bits = largest_bits(&largest);
  float amax = from_bits(bits);
  bool finite = bits < 0x7f800000;

  if (!finite || amax < TINY) {
    for (size_t i = 0; i < 2 * chunks; i++) memset(bytes + i * stride, flip, CHUNK);
    return finite ? 0.0f : from_bits(0x7fc00000);
  }
  float inverse = 127.0f / amax;
  for (size_t c = 0; c < chunks; c++)
    chunk_digits(c < whole ? x + c * CHUNK : last, inverse, flip, bytes + 2 * c * stride, bytes + (2 * c + 1) * stride);
  return amax / 127.0f;
}
