// What the parts of a linear map share, whatever its weights are. int8/ and int4/ have the arithmetic.
#ifndef FLYWHEEL_LINEAR_PARTS_H
#define FLYWHEEL_LINEAR_PARTS_H

#include "kernels.h"
#include "adapters/lora.h"

enum { BLOCK_OUTPUTS = 16 };  // outputs of a tile of weights

// Numbers below this are rounded to zero.
#define TINY 1e-30f

typedef struct Slab Slab;

// linear/memory.c: memory for weights, aligned to 64 bytes, and what to give back for it. NULL = out of memory.
void *linear_memory_take(size_t bytes, Slab **owner);
void linear_memory_give(Slab *slab);

typedef enum { LINEAR_INT8, LINEAR_INT4, LINEAR_TYPES } LinearType;

// Every array is padded with zeros to whole tiles.
struct LinearWeights {
  LinearType type;
  size_t inputs, outputs;
  size_t chunks, blocks;  // tiles along inputs and along outputs
  size_t tile_bytes;
  uint8_t *tiles;    // [blocks][chunks][tile_bytes]
  int32_t *offsets;  // [outputs], int8 only (int8/int8.h)
  float *scales;     // [outputs], int8 only: int4 has them in its tiles
  float *bias;       // [outputs]
  Slab *slab;        // where all of it lies
};

// Rows as integers, in row blocks of `height` rows; the last may have fewer.
typedef struct {
  size_t rows, height;
  size_t chunk_bytes;  // of a row's part in a tile
  uint8_t *bytes;      // [row blocks][chunks][height * chunk_bytes], in the order of the path
  float *units;        // [rows], int8 only
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
  void (*product)(const LinearWeights *weights, const Digits *digits, Part part, Result result);
  size_t chunk_bytes;  // of its digits
  size_t least_rows;   // fewer rows are for another path
  size_t height;       // most rows of a row block
  size_t width;        // output blocks that it takes best together
  float macs_per_us;   // weights times rows, on one thread
} LinearPath;

// linear/paths.c: those of this processor for this type of weights, the best one first. Ends with NULL.
const LinearPath *const *linear_paths(LinearType type);

// linear_map() by one path.
bool linear_map_by(const LinearPath *path, const LinearWeights *weights, const LinearPrologue *prologue, const float *x,
                   size_t rows, const Adapters *adapters, Result result, const Crew *crew);

static inline size_t rows_of_block(const Digits *digits, size_t block) {
  size_t left = digits->rows - block * digits->height;
  return left < digits->height ? left : digits->height;
}

static inline Result moved(Result result, size_t by) {
  return (Result){result.residual != NULL ? result.residual + by : NULL, result.y + by};
}

// Bytes of a row block.
static inline size_t row_block_bytes(const Digits *digits, size_t chunks) {
  return chunks * digits->height * digits->chunk_bytes;
}

// Bytes of the weights of an output block.
static inline size_t block_bytes(const LinearWeights *weights) {
  return weights->chunks * weights->tile_bytes;
}

// How far ahead to fetch weights: `step` bytes from one group of output blocks to the next. Processors do not foresee
// that jump. Far weights would leave the cache again; then it is enough to stay ahead inside the group.
static inline size_t bytes_ahead(size_t step) {
  return step <= 256 << 10 ? step : 4096;
}

#endif
