// Places of one output block, in strips of as many outputs as a vector has lanes.
#ifndef FLYWHEEL_LINEAR_STRIPS_H
#define FLYWHEEL_LINEAR_STRIPS_H

#include "linear/places.h"
#include "vectors/vectors.h"

enum { STRIPS = BLOCK_OUTPUTS / LANES };

// The first output of a strip.
INLINE size_t strip_output(const Place *place, size_t strip) { return place->block * BLOCK_OUTPUTS + strip * LANES; }

typedef void MultiplyStrip(const Place *place, size_t strip);

// All strips with outputs that exist.
INLINE void each_strip(const Place *place, MultiplyStrip *multiply) {
  for (size_t strip = 0; strip < STRIPS && strip_output(place, strip) < place->weights->outputs; strip++)
    multiply(place, strip);
}

// Adds the residual and stores those outputs of a row that exist.
INLINE void store_strip(const Place *place, size_t row, size_t output, Lanes y) {
  const size_t outputs = place->weights->outputs, left = outputs - output;
  const Result to = moved(place->result, row * outputs + output);
  if (to.residual != NULL)
    y = lanes_add(y, left < LANES ? lanes_load_some(to.residual, left) : lanes_load(to.residual));
  lanes_store_some(to.y, y, left);
}

#endif
