// One head of a rotation.
#include <string.h>

#include "rows/rotary.h"
#include "vectors/vectors.h"

// x' = x * cos - y * sin, y' = y * cos + x * sin. Of each, the first product is rounded, the second is fused.
INLINE void rotate_lanes(Lanes *x, Lanes *y, Lanes cos, Lanes sin) {
  const Lanes turned = lanes_minus(lanes_mul(*x, cos), *y, sin);
  *y = lanes_plus(lanes_mul(*y, cos), *x, sin);
  *x = turned;
}

void rotate_row(const float *x, size_t n, const float *cos, const float *sin, size_t turned, float *y) {
  const size_t half = turned / 2;
  size_t i = 0;
  for (; i + LANES <= half; i += LANES) {
    Lanes first = lanes_load(x + i), second = lanes_load(x + half + i);
    rotate_lanes(&first, &second, lanes_load(cos + i), lanes_load(sin + i));
    lanes_store(y + i, first);
    lanes_store(y + half + i, second);
  }
  if (i < half) {
    const size_t rest = half - i;
    Lanes first = lanes_load_some(x + i, rest), second = lanes_load_some(x + half + i, rest);
    rotate_lanes(&first, &second, lanes_load_some(cos + i, rest), lanes_load_some(sin + i, rest));
    lanes_store_some(y + i, first, rest);
    lanes_store_some(y + half + i, second, rest);
  }
  if (y != x) memcpy(y + turned, x + turned, (n - turned) * sizeof(float));
}
