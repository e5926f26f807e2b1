// A step's adapters at one map, in units that threads share.
#ifndef FLYWHEEL_LORA_UNITS_H
#define FLYWHEEL_LORA_UNITS_H

#include "adapters/blocks.h"

typedef struct {
  LoraMap map;
  const float *x;
  LoraTarget target;  // all outputs
  Blocks blocks;
} Step;

// Microseconds of one thread, roughly. `products`: of a row, for each column.
float step_us(const Step *step, size_t products);

// x · A. A unit is some columns of a part, for the rows of a block.
size_t narrow_units(const Step *step);
void narrow_unit(const Step *step, size_t unit);
void narrow_block(const Step *step, const Block *block);

// t · B for the rows of a block, outputs first .. end - 1.
void widen_block(const Step *step, const Block *block, size_t first, size_t end);

#endif
