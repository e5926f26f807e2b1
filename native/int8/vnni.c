// The int8 product with AVX-512 VNNI: one instruction multiplies four inputs of one row with the weights of 16 outputs.
// It takes the row's bytes as unsigned, so digits come with 128 added and sums start at weights->offsets.

#include <immintrin.h>
#include <string.h>

#include "int8/int8.h"
#include "linear/places.h"
#include "processor.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_TWICE _Pragma("GCC unroll 2")

enum { MAX_ROWS = 6, MAX_WIDTH = 4 };

INLINE __m512i four_bytes(const uint8_t *bytes) {
  int32_t value;
  memcpy(&value, bytes, sizeof value);
  return _mm512_set1_epi32(value);
}

// sums += bytes * w. The compiler's own form copies every sum twice.
#define ADD_PRODUCT(sums, bytes, w) __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes), "v"(w))

INLINE void multiply(const Place *place, const int rows, const int width) {
  const LinearWeights *weights = place->weights;
  __m512i sums[MAX_ROWS][2][MAX_WIDTH];
  const size_t first = place->block * BLOCK_OUTPUTS, length = block_bytes(weights), ahead = place->ahead;
  UNROLL for (int v = 0; v < width; v++) {
    __m512i offset = _mm512_load_si512(weights->offsets + first + v * BLOCK_OUTPUTS);
    UNROLL for (int r = 0; r < rows; r++) sums[r][0][v] = sums[r][1][v] = offset;
  }
  const int8_t *tile = (const int8_t *)weights->tiles + place->block * length, *end = tile + length;
  const uint8_t *coarse = place->digits, *fine = coarse + place->height * CHUNK;
  while (tile < end) {
    // Two steps a turn: counting turns takes room that products need.
    UNROLL_TWICE for (int g = 0; g < CHUNK / 4; g++, tile += 64) {
      __m512i w[MAX_WIDTH];
      UNROLL for (int v = 0; v < width; v++) {
        w[v] = _mm512_load_si512(tile + v * length);
        _mm_prefetch((const char *)tile + v * length + ahead, _MM_HINT_T1);
      }
      UNROLL for (int r = 0; r < rows; r++) {
        __m512i high = four_bytes(coarse + r * CHUNK + 4 * g), low = four_bytes(fine + r * CHUNK + 4 * g);
        UNROLL for (int v = 0; v < width; v++) {
          ADD_PRODUCT(sums[r][0][v], high, w[v]);
          ADD_PRODUCT(sums[r][1][v], low, w[v]);
        }
      }
    }
    coarse += 2 * place->height * CHUNK;
    fine += 2 * place->height * CHUNK;
  }
  UNROLL for (int v = 0; v < width; v++) {
    size_t output = first + v * BLOCK_OUTPUTS, left = weights->outputs - output;
    __mmask16 mask = left >= BLOCK_OUTPUTS ? 0xffff : (1u << left) - 1;
    __m512 scales = _mm512_load_ps(weights->scales + output), bias = _mm512_load_ps(weights->bias + output);
    UNROLL for (int r = 0; r < rows; r++) {
      __m512 high = _mm512_cvtepi32_ps(sums[r][0][v]), low = _mm512_cvtepi32_ps(sums[r][1][v]);
      __m512 value = _mm512_fmadd_ps(low, _mm512_set1_ps(FINE_UNIT), high);
      __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(place->units[r]));
      const Result to = moved(place->result, r * weights->outputs + output);
      value = _mm512_fmadd_ps(value, scale, bias);
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
MULTIPLY(3, 1) MULTIPLY(3, 2) MULTIPLY(3, 3) MULTIPLY(3, 4)
MULTIPLY(4, 1) MULTIPLY(4, 2)
MULTIPLY(5, 1) MULTIPLY(5, 2)
MULTIPLY(6, 1) MULTIPLY(6, 2)

// [rows - 1][width - 1]
static Multiply *const multiplies[MAX_ROWS][MAX_WIDTH] = {
    {multiply_1_1, multiply_1_2, multiply_1_3, multiply_1_4},
    {multiply_2_1, multiply_2_2, multiply_2_3, multiply_2_4},
    {multiply_3_1, multiply_3_2, multiply_3_3, multiply_3_4},
    {multiply_4_1, multiply_4_2},
    {multiply_5_1, multiply_5_2},
    {multiply_6_1, multiply_6_2},
};

static void multiply_place(const Place *place) { multiplies[place->rows - 1][place->width - 1](place); }

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  each_place(weights, digits, part, result, digits->height <= 3 ? MAX_WIDTH : 2, multiply_place);
}

const LinearPath int8_vnni = {.name = "vnni",
                            .runs_here = processor_has_vnni,
                            .round = int8_round_flipped,
                            .product = product,
                            .chunk_bytes = DIGIT_BYTES,
                            .least_rows = 1,
                            .height = MAX_ROWS,
                            .width = 1,
                            .macs_per_us = 100e3f};
