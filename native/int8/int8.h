// Linear maps with weights of one byte and one scale per output.
//
// The arithmetic, for a row x whose largest magnitude is amax, where the processor multiplies bytes (AMX, VNNI, NEON):
//   inverse = 127 / amax
//   coarse  = round(x_i * inverse)                              an integer, -127 .. 127
//   fine    = round((x_i * inverse - coarse) * 254)             the bracket with one rounding; an integer, -127 .. 127
//   C, F    = sums of coarse * w and of fine * w                exact in int32 up to 130,000 inputs
//   S, unit = C + F / 254, amax / 127                           C and F as floats, one fused multiply-add
// and where it does not (words):
//   word    = round(x_i * (32767 / amax))                       an integer, -32767 .. 32767
//   A, B    = sums of word * w, of the first and of the last two of every four inputs; exact in int32 for GROUP inputs
//   S, unit = sum over groups of (A + B), amax / 32767          A and B as floats; groups in order
// Then, in every case:
//   y       = S * (unit * scale) + bias                         one fused multiply-add
//   y       = y + residual                                      if there is one
// All paths that multiply bytes give the same bits. Rounding is to nearest, ties to even. A row below TINY is a row of zeros. A
// row with NaN or infinity gives NaN.
#ifndef FLYWHEEL_INT8_H
#define FLYWHEEL_INT8_H

#include "linear/parts.h"

enum {
  CHUNK = 64,                    // inputs of a tile
  TILE = BLOCK_OUTPUTS * CHUNK,  // bytes: [CHUNK / 4][BLOCK_OUTPUTS][4 inputs]
  DIGIT_BYTES = 2 * CHUNK,       // of a row's part in a tile
  FLIP = 0x80,                   // signed byte ^ FLIP = unsigned byte of value + 128
  GROUP = 1024,                  // inputs whose words' products are added exactly: 256 * 2 * 32767 * 128 < 2^31
};

// weights->offsets: -128 * sum of an output's weights, what a product with unsigned digits starts with.
// Digits: bytes, [row blocks][chunks][coarse, fine][height][CHUNK], or words, [row blocks][chunks][height][CHUNK].

#define FINE_STEPS 254.0f
#define FINE_UNIT (1.0f / 254.0f)
#define LARGEST_WORD 32767.0f

#if defined(VECTORS_AVX512)
extern const LinearPath int8_amx, int8_vnni, int8_words;
#elif defined(VECTORS_AVX2)
extern const LinearPath int8_words;
#elif defined(VECTORS_NEON)
extern const LinearPath int8_neon;
#endif

// int8/round-lanes.c: LinearPath's `round`, as signed bytes, as unsigned bytes (FLIP), as words.
float int8_round_bytes(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);
float int8_round_flipped(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);
float int8_round_words(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);

#endif
