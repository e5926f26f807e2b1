// Weights of the int4 linear map in the order in which all processors' products read them (int4/int4.h).

#include <stdlib.h>
#include <string.h>

#include "int4/int4.h"
#include "sizes.h"

// 8 inputs of one output: `from` has input 2i in the lower half of byte i and input 2i + 1 in its upper half.
static void pack_eight(const uint8_t *from, uint8_t *to) {
  to[0] = (uint8_t)((from[0] & 15) | from[2] << 4);
  to[1] = (uint8_t)(from[0] >> 4 | (from[2] & 0xf0));
  to[2] = (uint8_t)((from[1] & 15) | from[3] << 4);
  to[3] = (uint8_t)(from[1] >> 4 | (from[3] & 0xf0));
}

LinearWeights *int4_weights_pack(const uint8_t *values, const float *scales, const float *bias, size_t inputs,
                                 size_t outputs) {
  const size_t chunks = inputs / INT4_CHUNK, blocks = divide_up(outputs, BLOCK_OUTPUTS);
  const size_t tiles = blocks * chunks, padded = blocks * BLOCK_OUTPUTS;
  LinearWeights *weights = malloc(sizeof *weights);
  if (weights == NULL) return NULL;
  Slab *slab;
  uint8_t *memory = linear_memory_take(tiles * INT4_TILE + padded * sizeof(float), &slab);
  if (memory == NULL) {
    free(weights);
    return NULL;
  }
  float *own_bias = (float *)(memory + tiles * INT4_TILE);
  *weights = (LinearWeights){LINEAR_INT4, inputs, outputs, chunks, blocks, INT4_TILE, memory, NULL, NULL, own_bias, slab};
  memset(own_bias, 0, padded * sizeof *own_bias);
  if (bias != NULL) memcpy(own_bias, bias, outputs * sizeof *bias);
  Int4Tile *tile = (Int4Tile *)memory;
  for (size_t block = 0; block < blocks; block++) {
    for (size_t chunk = 0; chunk < chunks; chunk++, tile++) {
      for (size_t o = 0; o < BLOCK_OUTPUTS; o++) {
        const size_t output = block * BLOCK_OUTPUTS + o, at = output * chunks + chunk;
        const bool real = output < outputs;
        tile->scales[o] = real ? scales[at] : 0;
        for (size_t l = 0; l < INT4_LINES; l++) {
          if (real) pack_eight(values + (at * INT4_LINES + l) * 4, tile->weights[l][o]);
          else memset(tile->weights[l][o], INT4_ZERO * 0x11, 4);
        }
      }
    }
  }
  return weights;
}
