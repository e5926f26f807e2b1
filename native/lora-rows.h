// One row through the factors of adapters, in the vectors of the target that the including file has set.
#include <stdbool.h>

#include "lora.h"
#include "vectors.h"

enum { CHAINS = 8 };  // sums of a column: input i goes to sum i mod 8, so that an addition need not wait for the last

// `count` <= LANES columns from the first on. Lanes beyond them are not stored.
INLINE Lanes load_columns(const float *from, size_t count) {
  return count == LANES ? lanes_load(from) : lanes_load_some(from, count);
}

INLINE Lanes column_sums(const float *x, size_t inputs, const float *a, size_t columns, size_t count) {
  Lanes sums[CHAINS];
  UNROLLED for (size_t i = 0; i < CHAINS; i++) sums[i] = lanes_all(0);
  size_t input = 0;
  for (; input + CHAINS <= inputs; input += CHAINS) {
    UNROLLED for (size_t i = 0; i < CHAINS; i++) {
      sums[i] = lanes_plus(sums[i], lanes_all(x[input + i]), load_columns(a + (input + i) * columns, count));
    }
  }
  for (size_t i = 0; input + i < inputs; i++) {
    sums[i] = lanes_plus(sums[i], lanes_all(x[input + i]), load_columns(a + (input + i) * columns, count));
  }
  UNROLLED for (size_t half = CHAINS / 2; half > 0; half /= 2) {
    UNROLLED for (size_t i = 0; i < half; i++) sums[i] = lanes_add(sums[i], sums[i + half]);
  }
  return sums[0];
}

static bool all_zero(const float *mask, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (mask[i] != 0) return false;
  }
  return true;
}

void lora_narrow_row(const float *x, size_t inputs, const float *a, size_t columns, const float *mask, float *y) {
  for (size_t first = 0; first < columns; first += LANES) {
    const size_t count = columns - first < LANES ? columns - first : LANES;
    if (mask != NULL && all_zero(mask + first, count)) {
      for (size_t i = 0; i < count; i++) y[first + i] = 0;
      continue;
    }
    Lanes sum = count == LANES ? column_sums(x, inputs, a + first, columns, LANES)
                               : column_sums(x, inputs, a + first, columns, count);
    if (mask != NULL) sum = lanes_mul(sum, load_columns(mask + first, count));
    lanes_store_some(y + first, sum, count);
  }
}

enum { WIDE = 64 };  // outputs at once

void lora_widen_row(const float *t, size_t columns, const float *b, size_t outputs, float *y) {
  size_t first = 0;
  for (; first + WIDE <= outputs; first += WIDE) {
    Lanes sums[WIDE / LANES];
    UNROLLED for (size_t i = 0; i < WIDE / LANES; i++) sums[i] = lanes_all(0);
    for (size_t column = 0; column < columns; column++) {
      if (t[column] == 0) continue;
      const Lanes factor = lanes_all(t[column]);
      const float *row = b + column * outputs + first;
      UNROLLED for (size_t i = 0; i < WIDE / LANES; i++) {
        sums[i] = lanes_plus(sums[i], factor, lanes_load(row + i * LANES));
      }
    }
    UNROLLED for (size_t i = 0; i < WIDE / LANES; i++) lanes_store(y + first + i * LANES, sums[i]);
  }
  for (; first < outputs; first += LANES) {
    const size_t count = outputs - first < LANES ? outputs - first : LANES;
    Lanes sum = lanes_all(0);
    for (size_t column = 0; column < columns; column++) {
      if (t[column] == 0) continue;
      sum = lanes_plus(sum, lanes_all(t[column]), load_columns(b + column * outputs + first, count));
    }
    lanes_store_some(y + first, sum, count);
  }
}
