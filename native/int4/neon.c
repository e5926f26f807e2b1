// The int4 product with Arm's dot products of signed bytes: one instruction multiplies the weights of four outputs with four
// digits of one row. Two rows share the weights: 2 rows x 16 outputs are 8 registers of sums and 8 of totals.

// In the compiler's order of instructions the sums would need more registers than there are.
#pragma GCC optimize("no-schedule-insns")

#include <arm_neon.h>

#include "int4/int4.h"
#include "processor.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_ROWS = 2, QUARTERS = BLOCK_OUTPUTS / 4 };

// Two lines of weights of four outputs with 16 digits of each row. a[r]: these digits.
#define LINE(first_lane)                                                                          \
  do {                                                                                            \
    const uint8x16_t w = vld1q_u8(tile->weights[2 * h + (first_lane) / 2][4 * v]);                \
    const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(w, vdupq_n_u8(15)));                       \
    const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(w, 4));                                 \
    for (int r = 0; r < rows; r++) {                                                              \
      sums[r][v] = vdotq_laneq_s32(sums[r][v], low, a[r], first_lane);                            \
      sums[r][v] = vdotq_laneq_s32(sums[r][v], high, a[r], (first_lane) + 1);                     \
    }                                                                                             \
  } while (0)

INLINE void add_tile(const Int4Tile *tile, const Int4Digits *of, float32x4_t totals[MAX_ROWS][QUARTERS], const int rows) {
  int32x4_t sums[MAX_ROWS][QUARTERS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < QUARTERS; v++) sums[r][v] = vdupq_n_s32(of->starts[r]);
  for (int h = 0; h < 2; h++) {
    int8x16_t a[MAX_ROWS];
    for (int r = 0; r < rows; r++) a[r] = vld1q_s8(of->digits + r * INT4_CHUNK + 16 * h);
    for (int v = 0; v < QUARTERS; v++) {
      LINE(0);
      LINE(2);
    }
  }
  for (int v = 0; v < QUARTERS; v++) {
    const float32x4_t scales = vld1q_f32(tile->scales + 4 * v);
    for (int r = 0; r < rows; r++) {
      const float32x4_t scale = vmulq_n_f32(scales, of->units[r]);
      totals[r][v] = vfmaq_f32(totals[r][v], vcvtq_f32_s32(sums[r][v]), scale);
    }
  }
}

// One row's 16 outputs, `count` of which exist.
INLINE void finish_row(const float32x4_t totals[QUARTERS], const float *bias, Result to, size_t count) {
  float y[BLOCK_OUTPUTS];
  for (int v = 0; v < QUARTERS; v++) vst1q_f32(y + 4 * v, vaddq_f32(totals[v], vld1q_f32(bias + 4 * v)));
  const size_t end = count < BLOCK_OUTPUTS ? count : BLOCK_OUTPUTS;
  for (size_t i = 0; i < end; i++) to.y[i] = to.residual != NULL ? y[i] + to.residual[i] : y[i];
}

INLINE void multiply(const LinearWeights *weights, size_t block, const uint8_t *digits, size_t height, Result result,
                     const int rows) {
  float32x4_t totals[MAX_ROWS][QUARTERS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < QUARTERS; v++) totals[r][v] = vdupq_n_f32(0);
  const Int4Tile *tile = (const Int4Tile *)(weights->tiles + block * block_bytes(weights));
  for (size_t chunk = 0; chunk < weights->chunks; chunk++) {
    const Int4Digits of = int4_digits(digits, chunk, height);
    add_tile(tile + chunk, &of, totals, rows);
  }
  const size_t first = block * BLOCK_OUTPUTS;
  for (int r = 0; r < rows; r++)
    finish_row(totals[r], weights->bias + first, moved(result, r * weights->outputs + first), weights->outputs - first);
}

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  for (size_t block = part.first_block; block < part.end_block; block++) {
    for (size_t rows = part.first_rows; rows < part.end_rows; rows++) {
      const uint8_t *bytes = digits->bytes + rows * row_block_bytes(digits, weights->chunks);
      const Result to = moved(result, rows * digits->height * weights->outputs);
      if (rows_of_block(digits, rows) == 2) multiply(weights, block, bytes, digits->height, to, 2);
      else multiply(weights, block, bytes, digits->height, to, 1);
    }
  }
}

const LinearPath int4_neon = {.name = "neon",
                              .runs_here = processor_has_vectors,
                              .round = int4_round,
                              .product = product,
                              .chunk_bytes = INT4_DIGIT_BYTES,
                              .least_rows = 1,
                              .height = MAX_ROWS,
                              .width = 1,
                              .macs_per_us = 30e3f};
