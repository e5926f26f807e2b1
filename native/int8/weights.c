// Weights of the int8 linear map in the order in which all processors' products read them (int8/int8.h). A tile of
// 1 KiB is 16 outputs x 64 inputs; four inputs of one output are neighbours, as the dot product instructions take them.

#include <stdlib.h>
#include <string.h>

#include "int8/int8.h"
#include "sizes.h"

typedef int8_t Bytes __attribute__((vector_size(16)));

// Four inputs x 16 outputs -> 16 outputs x four inputs.
static void interleave(const Bytes rows[4], int8_t *out) {
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_PAIRS 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23
#define HIGH_PAIRS 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31
  Bytes low01 = __builtin_shufflevector(rows[0], rows[1], LOW), low23 = __builtin_shufflevector(rows[2], rows[3], LOW);
  Bytes high01 = __builtin_shufflevector(rows[0], rows[1], HIGH);
  Bytes high23 = __builtin_shufflevector(rows[2], rows[3], HIGH);
  Bytes result[4] = {
      __builtin_shufflevector(low01, low23, LOW_PAIRS),
      __builtin_shufflevector(low01, low23, HIGH_PAIRS),
      __builtin_shufflevector(high01, high23, LOW_PAIRS),
      __builtin_shufflevector(high01, high23, HIGH_PAIRS),
  };
  memcpy(out, result, sizeof result);
}

// Tile `chunk` of output block `block`; adds the weights of each output to `sums`.
static void pack_tile(const LinearWeights *weights, const int8_t *values, size_t block, size_t chunk, int32_t *sums) {
  int8_t *out = (int8_t *)weights->tiles + (block * weights->chunks + chunk) * TILE;
  size_t output = block * BLOCK_OUTPUTS, left = weights->outputs - output;
  size_t count = left < BLOCK_OUTPUTS ? left : BLOCK_OUTPUTS;
  int16_t tile_sums[BLOCK_OUTPUTS] = {0};
  for (size_t input = chunk * CHUNK; input < (chunk + 1) * CHUNK; input += 4, out += 4 * BLOCK_OUTPUTS) {
    Bytes rows[4] = {{0}};
    for (size_t i = 0; i < 4 && input + i < weights->inputs; i++) {
      const int8_t *row = values + (input + i) * weights->outputs + output;
      if (count == BLOCK_OUTPUTS) memcpy(&rows[i], row, BLOCK_OUTPUTS);
      else memcpy(&rows[i], row, count);
    }
    for (int i = 0; i < 4; i++)
      for (int o = 0; o < BLOCK_OUTPUTS; o++) tile_sums[o] += rows[i][o];
    interleave(rows, out);
  }
  for (int o = 0; o < BLOCK_OUTPUTS; o++) sums[o] += tile_sums[o];
}

LinearWeights *int8_weights_pack(const int8_t *values, const float *scales, const float *bias, size_t inputs,
                               size_t outputs) {
  size_t chunks = divide_up(inputs, CHUNK), blocks = divide_up(outputs, BLOCK_OUTPUTS);
  size_t padded = blocks * BLOCK_OUTPUTS;
  LinearWeights *weights = malloc(sizeof *weights);
  if (weights == NULL) return NULL;
  Slab *slab;
  uint8_t *memory = linear_memory_take(blocks * chunks * TILE + padded * (sizeof(int32_t) + 2 * sizeof(float)), &slab);
  if (memory == NULL) {
    free(weights);
    return NULL;
  }
  int32_t *offsets = (int32_t *)(memory + blocks * chunks * TILE);
  float *numbers = (float *)(offsets + padded);
  *weights = (LinearWeights){LINEAR_INT8, inputs,  outputs, chunks,           blocks, TILE,
                             memory,      offsets, numbers, numbers + padded, slab};
  memset(offsets, 0, padded * (sizeof(int32_t) + 2 * sizeof(float)));
  memcpy(weights->scales, scales, outputs * sizeof *scales);
  if (bias != NULL) memcpy(weights->bias, bias, outputs * sizeof *bias);
  // Blocks inside chunks: the values of neighbouring blocks share cache lines.
  for (size_t chunk = 0; chunk < chunks; chunk++)
    for (size_t block = 0; block < blocks; block++)
      pack_tile(weights, values, block, chunk, offsets + block * BLOCK_OUTPUTS);
  for (size_t i = 0; i < padded; i++) offsets[i] *= -128;
  return weights;
}
