// The rows of a step that use the same adapter, in blocks.
#ifndef FLYWHEEL_LORA_BLOCKS_H
#define FLYWHEEL_LORA_BLOCKS_H

#include "adapters/lora.h"

enum { BLOCK_ROWS = 64 };  // at most: their numbers stay in the cache while factors pass

typedef struct {
  const size_t *rows;
  size_t count;
  const float *a, *b;  // of the first part
  const float *flags;  // of the parts; NULL = there are all
  size_t columns;      // of each part; 0 = no adapter
  float scale;
  float *t;  // [count][part_count * columns]
} Block;

typedef struct {
  Block *list;
  size_t count;
  size_t *rows;  // of all blocks
  float *t;      // of all blocks; NULL = it is the caller's
} Blocks;

// Rows 0 .. rows - 1 in blocks like `like`, whose t is that of all rows. False = out of memory.
bool blocks_of_one(Blocks *blocks, const Block *like, size_t rows);

// The rows of each adapter in blocks of at most `most` rows; and those without one, if they are `wanted`.
bool blocks_of_adapters(Blocks *blocks, const Adapters *adapters, size_t rows, size_t most, bool wanted);

void blocks_free(Blocks *blocks);

#endif
