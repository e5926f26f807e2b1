// Linear maps with weights of half a byte: 0 .. 15, which stand for -8 .. 7, and one scale for every 32 inputs of an output.
//
// The arithmetic, for 32 inputs of a row, whose largest magnitude is amax:
//   digit = round(x_i * (127 / amax))                 an integer, -127 .. 127
//   unit  = amax / 127
//   D     = sum of digit * (weight - 8)               exact in int32: sum of digit * weight, from -8 * sum of digits on
//   y     = y + D * (unit * scale)                    D as a float, one fused multiply-add, chunk after chunk from 0
// Then, for every output:
//   y     = y + bias
//   y     = y + residual                              if there is one
// All paths give the same bits. Rounding is to nearest, ties to even. 32 inputs below TINY are zeros. With NaN or infinity
// among them, the row's results are NaN.
#ifndef FLYWHEEL_INT4_H
#define FLYWHEEL_INT4_H

#include "linear/parts.h"

enum {
  INT4_CHUNK = 32,     // inputs of a tile, which have one scale
  INT4_ZERO = 8,       // the weight that stands for 0
  INT4_LINES = 4,      // lines of 64 bytes of weights in a tile
  INT4_TILE = INT4_LINES * 64 + BLOCK_OUTPUTS * sizeof(float),
  INT4_DIGIT_BYTES = INT4_CHUNK + sizeof(float) + sizeof(int32_t),
};

// Weights of a tile: [INT4_LINES][BLOCK_OUTPUTS][4]. In line l, byte i of an output has input 8 * l + i in its lower half and
// input 8 * l + 4 + i in its upper half.
typedef struct {
  uint8_t weights[INT4_LINES][BLOCK_OUTPUTS][4];
  float scales[BLOCK_OUTPUTS];
} Int4Tile;
_Static_assert(sizeof(Int4Tile) == INT4_TILE, "a tile has no gaps");

// Digits of a chunk of a row block of `height` rows.
typedef struct {
  const int8_t *digits;   // [height][INT4_CHUNK]
  const float *units;     // [height]
  const int32_t *starts;  // [height]: -8 * sum of digits
} Int4Digits;

static inline Int4Digits int4_digits(const uint8_t *block, size_t chunk, size_t height) {
  const uint8_t *bytes = block + chunk * height * INT4_DIGIT_BYTES;
  const float *units = (const float *)(bytes + height * INT4_CHUNK);
  return (Int4Digits){(const int8_t *)bytes, units, (const int32_t *)(units + height)};
}

#if defined(VECTORS_AVX512)
extern const LinearPath int4_vnni, int4_pairs;
#elif defined(VECTORS_AVX2)
extern const LinearPath int4_pairs;
#elif defined(VECTORS_NEON)
extern const LinearPath int4_neon;
#endif

// int4/round-lanes.c: LinearPath's `round`. Units are beside the digits, so it returns 1.
float int4_round(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);

#endif
