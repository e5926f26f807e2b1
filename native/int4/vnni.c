// The int4 product with AVX-512 VNNI: one instruction multiplies the weights of 16 outputs, as unsigned bytes, with four
// digits of one row.

#include <immintrin.h>

#include "int4/int4.h"
#include "linear/places.h"
#include "processor.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 12")

enum { MAX_ROWS = 12, MAX_WIDTH = 4 };

// sums += w * four digits. The compiler's own form copies every sum.
#define ADD_PRODUCT(sums, w, digits) \
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums) : "v"(w), "m"(*(const int32_t *)(digits)))

// One tile with `rows` rows: adds to `totals`, which are MAX_WIDTH apart.
INLINE void add_tile(const Int4Tile *tile, const Int4Digits *of, __m512 totals[][MAX_WIDTH], const int v, const int rows) {
  const __m512i half = _mm512_set1_epi8(15);
  __m512i sums[MAX_ROWS];
  UNROLL for (int r = 0; r < rows; r++) sums[r] = _mm512_set1_epi32(of->starts[r]);
  UNROLL for (int l = 0; l < INT4_LINES; l++) {
    const __m512i w = _mm512_load_si512(tile->weights[l]);
    const __m512i low = _mm512_and_si512(w, half), high = _mm512_and_si512(_mm512_srli_epi16(w, 4), half);
    UNROLL for (int r = 0; r < rows; r++) {
      const int8_t *digits = of->digits + r * INT4_CHUNK + 8 * l;
      ADD_PRODUCT(sums[r], low, digits);
      ADD_PRODUCT(sums[r], high, digits + 4);
    }
  }
  const __m512 scales = _mm512_load_ps(tile->scales);
  UNROLL for (int r = 0; r < rows; r++) {
    const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(of->units[r]));
    totals[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r]), scale, totals[r][v]);
  }
}

INLINE void multiply(const Place *place, const int rows, const int width) {
  const LinearWeights *weights = place->weights;
  __m512 totals[MAX_ROWS][MAX_WIDTH];
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int v = 0; v < width; v++) totals[r][v] = _mm512_setzero_ps();
  }
  const size_t length = block_bytes(weights), ahead = place->ahead;
  const uint8_t *first = weights->tiles + place->block * length;
  for (size_t chunk = 0; chunk < weights->chunks; chunk++, first += INT4_TILE) {
    const Int4Digits of = int4_digits(place->digits, chunk, place->height);
    UNROLL for (int v = 0; v < width; v++) {
      const uint8_t *tile = first + v * length;
      UNROLL for (int i = 0; i < INT4_TILE; i += 64) _mm_prefetch((const char *)tile + i + ahead, _MM_HINT_T1);
      add_tile((const Int4Tile *)tile, &of, totals, v, rows);
    }
  }
  UNROLL for (int v = 0; v < width; v++) {
    const size_t output = (place->block + v) * BLOCK_OUTPUTS, left = weights->outputs - output;
    const __mmask16 mask = left >= BLOCK_OUTPUTS ? 0xffff : (1u << left) - 1;
    const __m512 bias = _mm512_load_ps(weights->bias + output);
    UNROLL for (int r = 0; r < rows; r++) {
      const Result to = moved(place->result, r * weights->outputs + output);
      __m512 value = _mm512_add_ps(totals[r][v], bias);
      if (to.residual != NULL) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, to.residual));
      _mm512_mask_storeu_ps(to.y, mask, value);
    }
  }
}

typedef void Multiply(const Place *place);

#define MULTIPLY(rows, width) \
  static void multiply_##rows##_##width(const Place *place) { multiply(place, rows, width); }
MULTIPLY(1, 1) MULTIPLY(1, 2) MULTIPLY(1, 3) MULTIPLY(1, 4)
MULTIPLY(2, 1) MULTIPLY(2, 2) MULTIPLY(2, 3) MULTIPLY(2, 4)
MULTIPLY(3, 1) MULTIPLY(4, 1) MULTIPLY(5, 1) MULTIPLY(6, 1) MULTIPLY(7, 1)
MULTIPLY(8, 1) MULTIPLY(9, 1) MULTIPLY(10, 1) MULTIPLY(11, 1) MULTIPLY(12, 1)

// [rows - 1][width - 1]
static Multiply *const multiplies[MAX_ROWS][MAX_WIDTH] = {
    {multiply_1_1, multiply_1_2, multiply_1_3, multiply_1_4},
    {multiply_2_1, multiply_2_2, multiply_2_3, multiply_2_4},
    {multiply_3_1}, {multiply_4_1}, {multiply_5_1},  {multiply_6_1},  {multiply_7_1},
    {multiply_8_1}, {multiply_9_1}, {multiply_10_1}, {multiply_11_1}, {multiply_12_1},
};

static void multiply_place(const Place *place) { multiplies[place->rows - 1][place->width - 1](place); }

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  each_place(weights, digits, part, result, digits->height <= 2 ? MAX_WIDTH : 1, multiply_place);
}

const LinearPath int4_vnni = {.name = "vnni",
                              .runs_here = processor_has_vnni,
                              .round = int4_round,
                              .product = product,
                              .chunk_bytes = INT4_DIGIT_BYTES,
                              .least_rows = 1,
                              .height = MAX_ROWS,
                              .width = 1,
                              .macs_per_us = 150e3f};
