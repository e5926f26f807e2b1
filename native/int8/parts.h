// What the parts of the int8 linear map share.
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
#ifndef FLYWHEEL_INT8_PARTS_H
#define FLYWHEEL_INT8_PARTS_H

#include "kernels.h"
#include "adapters/lora.h"

enum {
  BLOCK_OUTPUTS = 16,  // outputs of a tile of weights
  CHUNK = 64,          // inputs of a tile
  TILE = BLOCK_OUTPUTS * CHUNK,
  FLIP = 0x80,         // signed byte ^ FLIP = unsigned byte of value + 128
  GROUP = 1024,        // inputs whose words' products are added exactly: 256 * 2 * 32767 * 128 < 2^31
};

#define TINY 1e-30f
#define FINE_STEPS 254.0f
#define FINE_UNIT (1.0f / 254.0f)
#define LARGEST_WORD 32767.0f

typedef struct Slab Slab;

// Memory for weights, aligned to 64 bytes, and what to give back for it. NULL = out of memory.
void *int8_memory_take(size_t bytes, Slab **owner);
void int8_memory_give(Slab *slab);

// Every array is padded with zeros to whole tiles.
struct Int8Weights {
  size_t inputs, outputs;
  size_t chunks, blocks;  // tiles along inputs and along outputs
  int8_t *tiles;          // [blocks][chunks][CHUNK / 4][BLOCK_OUTPUTS][4 inputs]
  int32_t *offsets;       // [outputs]: -128 * sum of weights, what a product with unsigned digits starts with
  float *scales, *bias;   // [outputs]
  Slab *slab;             // where all of it lies
};

// Rows as integers of two bytes, in row blocks of `height` rows; the last may have fewer.
typedef struct {
  size_t rows, height;
  uint8_t *bytes;  // [row blocks][chunks][coarse, fine][height][CHUNK], or words: [row blocks][chunks][height][CHUNK]
  float *units;    // [rows]
} Digits;

// Where a product goes, [rows][outputs] both. residual: NULL = none; may be y.
typedef struct {
  const float *residual;
  float *y;
} Result;

// Part of a product: row blocks x output blocks, each from first to end - 1.
typedef struct {
  size_t first_rows, end_rows, first_block, end_block;
} Part;

// One way to multiply.
typedef struct {
  const char *name;
  bool (*runs_here)(void);
  // Rounds row `row` of a row block, where its digits lie at `block`; returns its unit.
  float (*round)(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);
  void (*product)(const Int8Weights *weights, const Digits *digits, Part part, Result result);
  size_t least_rows;   // fewer rows are for another path
  size_t height;       // most rows of a row block
  size_t width;        // output blocks that it takes best together
  float macs_per_us;   // weights times rows, on one thread
} Int8Path;

#if defined(VECTORS_AVX512)
extern const Int8Path int8_amx, int8_vnni, int8_words;
#elif defined(VECTORS_AVX2)
extern const Int8Path int8_words;
#elif defined(VECTORS_NEON)
extern const Int8Path int8_neon;
#endif

// Paths of this processor, the best one first. Ends with NULL.
const Int8Path *const *int8_paths(void);

// int8_linear() by one path.
bool int8_linear_by(const Int8Path *path, const Int8Weights *weights, const Int8Prologue *prologue, const float *x,
                    size_t rows, const Adapters *adapters, Result result, const Crew *crew);

// int8/round-lanes.c: Int8Path's `round`, as signed bytes, as unsigned bytes (FLIP), as words.
float int8_round_bytes(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);
float int8_round_flipped(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);
float int8_round_words(const float *x, size_t inputs, uint8_t *block, size_t row, size_t height);

static inline size_t rows_of_block(const Digits *digits, size_t block) {
  size_t left = digits->rows - block * digits->height;
  return left < digits->height ? left : digits->height;
}

static inline Result moved(Result result, size_t by) {
  return (Result){result.residual != NULL ? result.residual + by : NULL, result.y + by};
}

// Bytes of a row block.
static inline size_t row_block_bytes(const Digits *digits, size_t chunks) {
  return chunks * 2 * digits->height * CHUNK;
}

// How far ahead to fetch weights: `step` bytes from one group of output blocks to the next. Processors do not foresee
// that jump. Far weights would leave the cache again; then it is enough to stay ahead inside the group.
static inline size_t bytes_ahead(size_t step) {
  return step <= 256 << 10 ? step : 4096;
}

#endif
