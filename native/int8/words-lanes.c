// The int8 product of processors without dot products of bytes: weights are widened to words, and one instruction multiplies
// pairs of words and adds the two products. A weight meets the whole of an activation at once instead of one digit after the
// other.
#if !defined(VECTORS_NEON)

#include <immintrin.h>
#include <string.h>

#include "int8/int8.h"
#include "linear/strips.h"
#include "processor.h"

#if defined(VECTORS_AVX512)

typedef __m512i Words;
enum { MAX_ROWS = 12 };
#define MACS_PER_US 70e3f
#define REGISTER "v"

INLINE Words words_zero(void) { return _mm512_setzero_si512(); }
INLINE Words words_widen(const int8_t *from) { return _mm512_cvtepi8_epi16(_mm256_load_si256((const __m256i *)from)); }
INLINE Words words_repeat(int64_t four) { return _mm512_set1_epi64(four); }
INLINE Words words_product(Words a, Words b) { return _mm512_madd_epi16(a, b); }

// Sums of neighbours.
INLINE Lanes joined(const Words sums[2]) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 low = _mm512_cvtepi32_ps(sums[0]), high = _mm512_cvtepi32_ps(sums[1]);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return lanes_add(_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high));
}

#elif defined(VECTORS_AVX2)

typedef __m256i Words;
enum { MAX_ROWS = 6 };
#define MACS_PER_US 40e3f
#define REGISTER "x"

INLINE Words words_zero(void) { return _mm256_setzero_si256(); }
INLINE Words words_widen(const int8_t *from) { return _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)from)); }
INLINE Words words_repeat(int64_t four) { return _mm256_set1_epi64x(four); }
INLINE Words words_product(Words a, Words b) { return _mm256_madd_epi16(a, b); }

// Sums of neighbours.
INLINE Lanes joined(const Words sums[2]) {
  const __m256 mixed = _mm256_hadd_ps(_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1]));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), _MM_SHUFFLE(3, 1, 2, 0)));
}

#endif

// sums += product. The compiler's own form needs more registers.
#define ADD(sums, product) __asm__("vpaddd %1, %0, %0" : "+" REGISTER(sums) : REGISTER(product))

// The products of one chunk. Two vectors of sums are a strip: two sums for each output (int8/int8.h). tile: where the
// strip's weights begin in it.
INLINE void add_chunk(Words sums[MAX_ROWS][2], const int8_t *tile, const int16_t *words, size_t ahead, const int rows) {
  for (int g = 0; g < CHUNK / 4; g++, tile += 4 * BLOCK_OUTPUTS) {
    const Words low = words_widen(tile), high = words_widen(tile + sizeof(Words) / 2);
    _mm_prefetch((const char *)tile + ahead, _MM_HINT_T1);
    UNROLLED for (int r = 0; r < rows; r++) {
      int64_t four;
      memcpy(&four, words + r * CHUNK + 4 * g, sizeof four);
      const Words inputs = words_repeat(four), first = words_product(inputs, low), second = words_product(inputs, high);
      ADD(sums[r][0], first);
      ADD(sums[r][1], second);
    }
  }
}

INLINE void multiply(const Place *place, size_t strip, const int rows) {
  const LinearWeights *weights = place->weights;
  const int8_t *tile = (const int8_t *)weights->tiles + place->block * block_bytes(weights) + strip * sizeof(Words);
  const int16_t *words = (const int16_t *)place->digits;
  Lanes totals[MAX_ROWS];
  UNROLLED for (int r = 0; r < rows; r++) totals[r] = lanes_all(0);
  for (size_t chunk = 0; chunk < weights->chunks;) {
    Words sums[MAX_ROWS][2];
    UNROLLED for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = words_zero();
    for (const size_t end = at_most(chunk + GROUP / CHUNK, weights->chunks); chunk < end; chunk++) {
      add_chunk(sums, tile, words, place->ahead, rows);
      tile += TILE;
      words += place->height * CHUNK;
    }
    UNROLLED for (int r = 0; r < rows; r++) totals[r] = lanes_add(totals[r], joined(sums[r]));
  }
  const size_t output = strip_output(place, strip);
  const Lanes scales = lanes_load(weights->scales + output), bias = lanes_load(weights->bias + output);
  UNROLLED for (int r = 0; r < rows; r++) {
    const Lanes scale = lanes_mul(scales, lanes_all(place->units[r]));
    store_strip(place, (size_t)r, output, lanes_plus(bias, totals[r], scale));
  }
}

#define MULTIPLY(rows) \
  static void multiply_##rows(const Place *place, size_t strip) { multiply(place, strip, rows); }
MULTIPLY(1) MULTIPLY(2) MULTIPLY(3) MULTIPLY(4) MULTIPLY(5) MULTIPLY(6)
#if defined(VECTORS_AVX512)
MULTIPLY(7) MULTIPLY(8) MULTIPLY(9) MULTIPLY(10) MULTIPLY(11) MULTIPLY(12)
#endif

// [rows - 1]
static MultiplyStrip *const multiplies[MAX_ROWS] = {
    multiply_1, multiply_2, multiply_3, multiply_4, multiply_5, multiply_6,
#if defined(VECTORS_AVX512)
    multiply_7, multiply_8, multiply_9, multiply_10, multiply_11, multiply_12,
#endif
};

static void multiply_place(const Place *place) { each_strip(place, multiplies[place->rows - 1]); }

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  each_place(weights, digits, part, result, 1, multiply_place);
}

const LinearPath int8_words = {.name = "words",
                             .runs_here = processor_has_vectors,
                             .round = int8_round_words,
                             .product = product,
                             .chunk_bytes = DIGIT_BYTES,
                             .least_rows = 1,
                             .height = MAX_ROWS,
                             .width = 1,
                             .macs_per_us = MACS_PER_US};

#endif
