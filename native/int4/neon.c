// The int4 product with Arm's dot products of signed bytes: one instruction multiplies the weights of four outputs with four
// digits of one row. Few rows take 16 outputs at once, so that sums do not wait for each other; more rows take four, so that
// weights are widened for eight rows.

// In the compiler's order of instructions the sums would need more registers than there are.
#pragma GCC optimize("no-schedule-insns")

#include <arm_neon.h>

#include "int4/int4.h"
#include "linear/places.h"
#include "processor.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { MAX_ROWS = 8, QUARTERS = BLOCK_OUTPUTS / 4 };

INLINE int8x16_t low_half(uint8x16_t w) { return vreinterpretq_s8_u8(vandq_u8(w, vdupq_n_u8(15))); }
INLINE int8x16_t high_half(uint8x16_t w) { return vreinterpretq_s8_u8(vshrq_n_u8(w, 4)); }

// `quarters` times four outputs of a tile, from quarter `first` on, with `rows` rows.
INLINE void add_tile(const Int4Tile *tile, const Int4Digits *of, float32x4_t totals[MAX_ROWS][QUARTERS], size_t first,
                     const int rows, const int quarters) {
  int32x4_t sums[MAX_ROWS][QUARTERS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < quarters; v++) sums[r][v] = vdupq_n_s32(of->starts[r]);
  for (int h = 0; h < 2; h++) {
    for (int v = 0; v < quarters; v++) {
      const uint8x16_t w = vld1q_u8(tile->weights[2 * h][4 * (first + v)]);
      const uint8x16_t next = vld1q_u8(tile->weights[2 * h + 1][4 * (first + v)]);
      const int8x16_t part[4] = {low_half(w), high_half(w), low_half(next), high_half(next)};
      for (int r = 0; r < rows; r++) {
        const int8x16_t digits = vld1q_s8(of->digits + r * INT4_CHUNK + 16 * h);
        sums[r][v] = vdotq_laneq_s32(sums[r][v], part[0], digits, 0);
        sums[r][v] = vdotq_laneq_s32(sums[r][v], part[1], digits, 1);
        sums[r][v] = vdotq_laneq_s32(sums[r][v], part[2], digits, 2);
        sums[r][v] = vdotq_laneq_s32(sums[r][v], part[3], digits, 3);
      }
    }
  }
  for (int v = 0; v < quarters; v++) {
    const float32x4_t scales = vld1q_f32(tile->scales + 4 * (first + v));
    for (int r = 0; r < rows; r++) {
      const float32x4_t scale = vmulq_n_f32(scales, of->units[r]);
      totals[r][v] = vfmaq_f32(totals[r][v], vcvtq_f32_s32(sums[r][v]), scale);
    }
  }
}

// Four outputs of a row, `count` of which exist.
INLINE void finish(float32x4_t y, Result to, size_t count) {
  if (count >= 4) {
    if (to.residual != NULL) y = vaddq_f32(y, vld1q_f32(to.residual));
    vst1q_f32(to.y, y);
    return;
  }
  float some[4];
  vst1q_f32(some, y);
  for (size_t i = 0; i < count; i++) to.y[i] = to.residual != NULL ? some[i] + to.residual[i] : some[i];
}

// `quarters` times four outputs of a place of one output block, from quarter `first` on.
INLINE void multiply(const Place *place, size_t first, const int rows, const int quarters) {
  const LinearWeights *weights = place->weights;
  float32x4_t totals[MAX_ROWS][QUARTERS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < quarters; v++) totals[r][v] = vdupq_n_f32(0);
  const Int4Tile *tile = (const Int4Tile *)(weights->tiles + place->block * block_bytes(weights));
  for (size_t chunk = 0; chunk < weights->chunks; chunk++) {
    const Int4Digits of = int4_digits(place->digits, chunk, place->height);
    add_tile(tile + chunk, &of, totals, first, rows, quarters);
  }
  UNROLL for (int v = 0; v < quarters; v++) {
    const size_t output = place->block * BLOCK_OUTPUTS + 4 * (first + v);
    const size_t count = output < weights->outputs ? weights->outputs - output : 0;
    const float32x4_t bias = vld1q_f32(weights->bias + output);
    UNROLL for (int r = 0; r < rows; r++)
      finish(vaddq_f32(totals[r][v], bias), moved(place->result, r * weights->outputs + output), count);
  }
}

typedef void Multiply(const Place *place, size_t first);

#define MULTIPLY(rows, quarters) \
  static void multiply_##rows(const Place *place, size_t first) { multiply(place, first, rows, quarters); }
MULTIPLY(1, QUARTERS) MULTIPLY(2, QUARTERS)
MULTIPLY(3, 1) MULTIPLY(4, 1) MULTIPLY(5, 1) MULTIPLY(6, 1) MULTIPLY(7, 1) MULTIPLY(8, 1)

// [rows - 1]
static Multiply *const multiplies[MAX_ROWS] = {multiply_1, multiply_2, multiply_3, multiply_4,
                                               multiply_5, multiply_6, multiply_7, multiply_8};

static void multiply_place(const Place *place) {
  const size_t quarters = place->rows <= 2 ? QUARTERS : 1;
  for (size_t first = 0; first < QUARTERS; first += quarters) multiplies[place->rows - 1](place, first);
}

static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  each_place(weights, digits, part, result, 1, multiply_place);
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
