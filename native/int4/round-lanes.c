// Rows of activations as bytes, in chunks with units of their own (the arithmetic: int4/int4.h).
#include <string.h>

#include "int4/int4.h"
#include "vectors/vectors.h"

enum { PARTS_OF_CHUNK = INT4_CHUNK / LANES };

#if defined(VECTORS_NEON)

// 32 digits; returns their sum.
INLINE int32_t digits_of(const Lanes x[PARTS_OF_CHUNK], float inverse, int8_t *digits) {
  int32_t sum = 0;
  for (int i = 0; i < 2; i++) {
    int16x4_t words[4];
    for (int j = 0; j < 4; j++) words[j] = vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x[4 * i + j], inverse)));
    const int8x8_t low = vmovn_s16(vcombine_s16(words[0], words[1]));
    const int8x16_t bytes = vcombine_s8(low, vmovn_s16(vcombine_s16(words[2], words[3])));
    vst1q_s8(digits + 16 * i, bytes);
    sum += vaddlvq_s8(bytes);
  }
  return sum;
}

#else

INLINE __m256i bytes_of(const Lanes x[PARTS_OF_CHUNK], Lanes factor) {
#if defined(VECTORS_AVX512)
  const __m128i low = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(lanes_mul(x[0], factor)));
  const __m128i high = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(lanes_mul(x[1], factor)));
  return _mm256_set_m128i(high, low);
#else
  __m256i whole[4];
  for (int i = 0; i < 4; i++) whole[i] = _mm256_cvtps_epi32(lanes_mul(x[i], factor));
  const __m256i low = _mm256_packs_epi32(whole[0], whole[1]), high = _mm256_packs_epi32(whole[2], whole[3]);
  // In fours: of the first, second, third and fourth vector, then again.
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#endif
}

// 32 digits; returns their sum.
INLINE int32_t digits_of(const Lanes x[PARTS_OF_CHUNK], float inverse, int8_t *digits) {
  const __m256i bytes = bytes_of(x, lanes_all(inverse));
  _mm256_storeu_si256((__m256i *)digits, bytes);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(1, 0, 3, 2)));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(2, 3, 0, 1))));
}

#endif

float int4_round(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height) {
  for (size_t c = 0; c < inputs / INT4_CHUNK; c++, x += INT4_CHUNK, block += height * INT4_DIGIT_BYTES) {
    Lanes values[PARTS_OF_CHUNK];
    Bits largest = bits_magnitude(lanes_all(0));
    UNROLLED for (int i = 0; i < PARTS_OF_CHUNK; i++) {
      values[i] = lanes_load(x + i * LANES);
      largest = bits_max(largest, bits_magnitude(values[i]));
    }
    const uint32_t bits = bits_largest(largest);
    const float amax = from_bits(bits);
    const bool finite = bits < 0x7f800000, zero = !finite || amax < TINY;
    float *unit = (float *)(block + height * INT4_CHUNK) + row;
    int32_t *start = (int32_t *)unit + height;
    int8_t *digits = (int8_t *)block + row * INT4_CHUNK;
    *unit = !finite ? from_bits(0x7fc00000) : zero ? 0 : amax / 127;
    *start = 0;
    if (zero) memset(digits, 0, INT4_CHUNK);
    else *start = -INT4_ZERO * digits_of(values, 127 / amax, digits);
  }
  return 1;
}
