// The int4 product of x64 processors without VNNI: one instruction multiplies weights, as unsigned bytes, with digits and adds
// two neighbours in 16 bits. Eight such sums fit: 8 * 2 * 15 * 127 < 2^15.
#if !defined(VECTORS_NEON)

#include <immintrin.h>
#include <string.h>

#include "int4/int4.h"
#include "linear/strips.h"
#include "processor.h"

#if defined(VECTORS_AVX512)

typedef __m512i Bytes;
enum { MAX_ROWS = 8 };
#define MACS_PER_US 70e3f

INLINE Bytes bytes_load(const uint8_t *from) { return _mm512_load_si512(from); }
INLINE Bytes bytes_low(Bytes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
INLINE Bytes bytes_high(Bytes x) { return bytes_low(_mm512_srli_epi16(x, 4)); }
INLINE Bytes bytes_repeat(int32_t four) { return _mm512_set1_epi32(four); }
INLINE Bytes pairs_product(Bytes weights, Bytes digits) { return _mm512_maddubs_epi16(weights, digits); }
INLINE Bytes pairs_add(Bytes a, Bytes b) { return _mm512_add_epi16(a, b); }
INLINE Lanes pairs_sum(Bytes pairs, int32_t start) {
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  return _mm512_cvtepi32_ps(_mm512_add_epi32(fours, _mm512_set1_epi32(start)));
}

#elif defined(VECTORS_AVX2)

typedef __m256i Bytes;
enum { MAX_ROWS = 4 };
#define MACS_PER_US 40e3f

INLINE Bytes bytes_load(const uint8_t *from) { return _mm256_load_si256((const __m256i *)from); }
INLINE Bytes bytes_low(Bytes x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
INLINE Bytes bytes_high(Bytes x) { return bytes_low(_mm256_srli_epi16(x, 4)); }
INLINE Bytes bytes_repeat(int32_t four) { return _mm256_set1_epi32(four); }
INLINE Bytes pairs_product(Bytes weights, Bytes digits) { return _mm256_maddubs_epi16(weights, digits); }
INLINE Bytes pairs_add(Bytes a, Bytes b) { return _mm256_add_epi16(a, b); }
INLINE Lanes pairs_sum(Bytes pairs, int32_t start) {
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return _mm256_cvtepi32_ps(_mm256_add_epi32(fours, _mm256_set1_epi32(start)));
}

#endif

// sums += w * four digits of each row.
INLINE void add_digits(Bytes sums[MAX_ROWS], Bytes w, const int8_t *digits, const int rows) {
  UNROLLED for (int r = 0; r < rows; r++) {
    int32_t four;
    memcpy(&four, digits + r * INT4_CHUNK, sizeof four);
    sums[r] = pairs_add(sums[r], pairs_product(w, bytes_repeat(four)));
  }
}

INLINE void multiply(const Place *place, size_t strip, const int rows) {
  const LinearWeights *weights = place->weights;
  const Int4Tile *tile = (const Int4Tile *)(weights->tiles + place->block * block_bytes(weights));
  Lanes totals[MAX_ROWS];
  UNROLLED for (int r = 0; r < rows; r++) totals[r] = lanes_all(0);
  for (size_t chunk = 0; chunk < weights->chunks; chunk++, tile++) {
    const Int4Digits of = int4_digits(place->digits, chunk, place->height);
    Bytes sums[MAX_ROWS];
    UNROLLED for (int r = 0; r < rows; r++) sums[r] = bytes_repeat(0);
    for (size_t i = 0; i < INT4_TILE; i += 64) _mm_prefetch((const char *)tile + i + place->ahead, _MM_HINT_T1);
    UNROLLED for (int l = 0; l < INT4_LINES; l++) {
      const Bytes w = bytes_load(tile->weights[l][strip * LANES]);
      add_digits(sums, bytes_low(w), of.digits + 8 * l, rows);
      add_digits(sums, bytes_high(w), of.digits + 8 * l + 4, rows);
    }
    const Lanes scales = lanes_load(tile->scales + strip * LANES);
    UNROLLED for (int r = 0; r < rows; r++) {
      const Lanes scale = lanes_mul(scales, lanes_all(of.units[r]));
      totals[r] = lanes_plus(totals[r], pairs_sum(sums[r], of.starts[r]), scale);
    }
  }
  const size_t output = strip_output(place, strip);
  const Lanes bias = lanes_load(weights->bias + output);
  UNROLLED for (int r = 0; r < rows; r++) store_strip(place, (size_t)r, output, lanes_add(totals[r], bias));
}

#define MULTIPLY(rows) \
  static void multiply_##rows(const Place *place, size_t strip) { multiply(place, strip, rows); }
MULTIPLY(1) MULTIPLY(2) MULTIPLY(3) MULTIPLY(4)
#if defined(VECTORS_AVX512)
MULTIPLY(5) MULTIPLY(6) MULTIPLY(7) MULTIPLY(8)
#endif

// [rows - 1]
static MultiplyStrip *const multiplies[MAX_ROWS] = {
    multiply_1, multiply_2, multiply_3, multiply_4,
#if defined(VECTORS_AVX512)
    multiply_5, multiply_6, multiply_7, multiply_8,
#endif
};

static void multiply_place(const Place *place) { each_strip(place, multiplies[place->rows - 1]); }

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  each_place(weights, digits, part, result, 1, multiply_place);
}

const LinearPath int4_pairs = {.name = "pairs",
                               .runs_here = processor_has_vectors,
                               .round = int4_round,
                               .product = product,
                               .chunk_bytes = INT4_DIGIT_BYTES,
                               .least_rows = 1,
                               .height = MAX_ROWS,
                               .width = 1,
                               .macs_per_us = MACS_PER_US};

#endif
