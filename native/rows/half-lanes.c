// Numbers of two bytes: widens and rounds them.
#include "rows/half.h"
#include "vectors/vectors.h"

void halves_narrow(const float *from, size_t count, uint16_t *to) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) lanes_narrow(to + i, lanes_load(from + i));
  if (i < count) lanes_narrow_some(to + i, lanes_load_some(from + i, count - i), count - i);
}

void halves_widen(const uint16_t *from, size_t count, float *to) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) lanes_store(to + i, lanes_widen(from + i));
  if (i < count) lanes_store_some(to + i, lanes_widen_some(from + i, count - i), count - i);
}
