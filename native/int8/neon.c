// The int8 product with Arm's dot products of signed bytes: one instruction multiplies four inputs of one row with the
// weights of four outputs. Two rows share the loaded weights: 2 rows x 2 digits x 16 outputs are 16 registers of sums.

// In the compiler's order of instructions the sums would need more registers than there are.
#pragma GCC optimize("no-schedule-insns")

#include <arm_neon.h>

#include "int8/int8.h"
#include "processor.h"

#define INLINE static inline __attribute__((always_inline))

// What becomes of 16 sums: they are stored, or added to a residual and stored, or only some of these outputs exist.
typedef enum { STORED, ADDED, PARTLY } Ending;

// One row's 16 outputs, `count` of them stored.
INLINE void finish_row(int32x4_t sums[2][4], float unit, const float *scales, const float *bias, Result to,
                       const Ending ending, size_t count) {
  float32x4_t result[4];
  for (int v = 0; v < 4; v++) {
    float32x4_t value = vfmaq_n_f32(vcvtq_f32_s32(sums[0][v]), vcvtq_f32_s32(sums[1][v]), FINE_UNIT);
    result[v] = vfmaq_f32(vld1q_f32(bias + 4 * v), value, vmulq_n_f32(vld1q_f32(scales + 4 * v), unit));
  }
  if (ending != PARTLY) {
    for (int v = 0; v < 4; v++) {
      if (ending == ADDED) result[v] = vaddq_f32(result[v], vld1q_f32(to.residual + 4 * v));
      vst1q_f32(to.y + 4 * v, result[v]);
    }
  } else {
    float padded[BLOCK_OUTPUTS];
    for (int v = 0; v < 4; v++) vst1q_f32(padded + 4 * v, result[v]);
    for (size_t i = 0; i < count; i++) to.y[i] = to.residual != NULL ? padded[i] + to.residual[i] : padded[i];
  }
}

// Four inputs of each row (lane `lane` of `a`) with the weights of 16 outputs.
#define GROUP(lane)                                                                    \
  do {                                                                                 \
    for (int v = 0; v < 4; v++) {                                                      \
      int8x16_t w = vld1q_s8(tile + 64 * (lane) + 16 * v);                             \
      for (int r = 0; r < rows; r++)                                                   \
        for (int d = 0; d < 2; d++) sums[r][d][v] = vdotq_laneq_s32(sums[r][d][v], w, a[r][d], lane); \
    }                                                                                  \
  } while (0)

// `rows` rows of one row block, from `digits` (the first chunk of the first of them), with one output block.
INLINE void multiply(const LinearWeights *weights, size_t block, const uint8_t *digits, size_t height, const float *units,
                     Result result, const int rows, const Ending ending) {
  int32x4_t sums[2][2][4];
  for (int r = 0; r < rows; r++)
    for (int d = 0; d < 2; d++)
      for (int v = 0; v < 4; v++) sums[r][d][v] = vdupq_n_s32(0);
  const int8_t *tile = (const int8_t *)weights->tiles + block * weights->chunks * TILE;
  const int8_t *end = tile + weights->chunks * TILE;
  const int8_t *coarse = (const int8_t *)digits, *fine = coarse + height * CHUNK;
  while (tile < end) {
    for (int q = 0; q < 4; q++, tile += TILE / 4) {
      int8x16_t a[2][2];
      for (int r = 0; r < rows; r++) {
        a[r][0] = vld1q_s8(coarse + r * CHUNK + 16 * q);
        a[r][1] = vld1q_s8(fine + r * CHUNK + 16 * q);
      }
      GROUP(0);
      GROUP(1);
      GROUP(2);
      GROUP(3);
    }
    coarse += 2 * height * CHUNK;
    fine += 2 * height * CHUNK;
  }
  size_t first = block * BLOCK_OUTPUTS;
  for (int r = 0; r < rows; r++)
    finish_row(sums[r], units[r], weights->scales + first, weights->bias + first,
               moved(result, r * weights->outputs + first), ending, weights->outputs - first);
}

// The same, compiled for each ending: a branch inside would interrupt the products.
INLINE void multiply_rows(const LinearWeights *weights, size_t block, const uint8_t *digits, size_t height,
                          const float *units, Result result, const int rows) {
  if ((block + 1) * BLOCK_OUTPUTS > weights->outputs)
    multiply(weights, block, digits, height, units, result, rows, PARTLY);
  else if (result.residual != NULL) multiply(weights, block, digits, height, units, result, rows, ADDED);
  else multiply(weights, block, digits, height, units, result, rows, STORED);
}

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  for (size_t block = part.first_block; block < part.end_block; block++) {
    for (size_t rows = part.first_rows; rows < part.end_rows; rows++) {
      const uint8_t *bytes = digits->bytes + rows * row_block_bytes(digits, weights->chunks);
      size_t first = rows * digits->height;
      Result out = moved(result, first * weights->outputs);
      if (rows_of_block(digits, rows) == 2)
        multiply_rows(weights, block, bytes, digits->height, digits->units + first, out, 2);
      else
        multiply_rows(weights, block, bytes, digits->height, digits->units + first, out, 1);
    }
  }
}

const LinearPath int8_neon = {.name = "neon",
                            .runs_here = processor_has_vectors,
                            .round = int8_round_bytes,
                            .product = product,
                            .chunk_bytes = DIGIT_BYTES,
                            .least_rows = 1,
                            .height = 2,
                            .width = 1,
                            .macs_per_us = 30e3f};
