// The order in which a product's kernels meet rows and outputs.
#ifndef FLYWHEEL_LINEAR_PLACES_H
#define FLYWHEEL_LINEAR_PLACES_H

#include "linear/parts.h"
#include "sizes.h"

enum { PANEL_BYTES = 256 << 10 };  // weights that stay in the cache while the rows pass

// What a kernel multiplies at once: a row block with some output blocks.
typedef struct {
  const LinearWeights *weights;
  size_t block, width;    // output blocks
  size_t rows, height;    // of the row block: those that exist, and those that its digits have room for
  const uint8_t *digits;  // of the row block
  const float *units;     // from its first row on, as the result
  Result result;
  size_t ahead;  // bytes from weights to those that this thread reads later, to fetch them into the cache; 0 = none
} Place;

// Rows outside outputs: a row block's digits stay in the nearest cache, and its outputs lie near each other. `most`: output
// blocks of a place.
static inline void each_place(const LinearWeights *weights, const Digits *digits, Part part, Result result, size_t most,
                              void (*multiply)(const Place *place)) {
  const size_t length = block_bytes(weights), panel = at_least(most, PANEL_BYTES / length);
  for (size_t from = part.first_block; from < part.end_block; from += panel) {
    const size_t end = at_most(from + panel, part.end_block);
    for (size_t rows = part.first_rows; rows < part.end_rows; rows++) {
      const size_t first = rows * digits->height;
      Place place = {
          .weights = weights,
          .rows = rows_of_block(digits, rows),
          .height = digits->height,
          .digits = digits->bytes + rows * row_block_bytes(digits, weights->chunks),
          .units = digits->units + first,
          .result = moved(result, first * weights->outputs),
      };
      for (place.block = from; place.block < end; place.block += place.width) {
        place.width = at_most(most, end - place.block);
        // The first rows fetch for all.
        const bool fetches = rows == part.first_rows && place.block + place.width < part.end_block;
        place.ahead = fetches ? bytes_ahead(place.width * length) : 0;
        multiply(&place);
      }
    }
  }
}

#endif
