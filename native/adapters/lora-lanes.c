// Some rows of one adapter. Tiles of rows and columns are computed together, so that a factor is loaded once for several
// rows.
#include "adapters/lora.h"
#include "vectors/vectors.h"

enum {
  TILE_ROWS = 4,
  // Of the 16 sums of a number, those of two vectors (or the only one) are made at once: more do not fit the registers.
  VECTORS = PARTS > 2 ? 2 : 1,
  PASSES = PARTS / VECTORS,
  TILE_COLUMNS = PARTS > 1 ? 2 : 4,
};

// Numbers `at` .. at + LANES - 1 of `end`; zeros beyond them.
INLINE Lanes load_within(const float *from, size_t at, size_t end) {
  if (at + LANES <= end) return lanes_load(from + at);
  return at < end ? lanes_load_some(from + at, end - at) : lanes_all(0);
}

// One pass: vectors pass, pass + PASSES of the 16 sums of every row and column, joined.
INLINE void tile_pass(const float *const *x, const size_t rows, size_t inputs, const float *a, const size_t columns,
                      size_t pass, Lanes joined[TILE_ROWS][TILE_COLUMNS]) {
  Lanes sums[TILE_ROWS][TILE_COLUMNS][VECTORS];
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t c = 0; c < columns; c++) {
      UNROLLED for (size_t v = 0; v < VECTORS; v++) sums[r][c][v] = lanes_all(0);
    }
  }
  const size_t whole = inputs / 16 * 16;
  for (size_t i = pass * LANES; i < whole; i += 16) {
    UNROLLED for (size_t v = 0; v < VECTORS; v++) {
      const size_t at = i + v * PASSES * LANES;
      Lanes factor[TILE_COLUMNS];
      UNROLLED for (size_t c = 0; c < columns; c++) {
        factor[c] = lanes_load(a + c * inputs + at);
        if (pass == 0 && v == 0) __builtin_prefetch(a + (columns + c) * inputs + at);  // the next tile
      }
      UNROLLED for (size_t r = 0; r < rows; r++) {
        const Lanes value = lanes_load(x[r] + at);
        UNROLLED for (size_t c = 0; c < columns; c++) sums[r][c][v] = lanes_plus(sums[r][c][v], value, factor[c]);
      }
    }
  }
  if (whole < inputs) {
    UNROLLED for (size_t v = 0; v < VECTORS; v++) {
      const size_t at = whole + (pass + v * PASSES) * LANES;
      UNROLLED for (size_t r = 0; r < rows; r++) {
        const Lanes value = load_within(x[r], at, inputs);
        UNROLLED for (size_t c = 0; c < columns; c++) {
          sums[r][c][v] = lanes_plus(sums[r][c][v], value, load_within(a + c * inputs, at, inputs));
        }
      }
    }
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t c = 0; c < columns; c++) {
      joined[r][c] = VECTORS == 1 ? sums[r][c][0] : lanes_add(sums[r][c][0], sums[r][c][VECTORS - 1]);
    }
  }
}

INLINE void narrow_tile(const float *const *x, const size_t rows, size_t inputs, const float *a, const size_t columns,
                        float scale, float *t, size_t t_width) {
  Lanes sums[TILE_ROWS][TILE_COLUMNS];
  tile_pass(x, rows, inputs, a, columns, 0, sums);
  if (PASSES > 1) {
    Lanes others[TILE_ROWS][TILE_COLUMNS];
    tile_pass(x, rows, inputs, a, columns, 1, others);
    UNROLLED for (size_t r = 0; r < rows; r++) {
      UNROLLED for (size_t c = 0; c < columns; c++) sums[r][c] = lanes_add(sums[r][c], others[r][c]);
    }
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t c = 0; c < columns; c++) t[r * t_width + c] = lanes_sum(sums[r][c]) * scale;
  }
}

// Not inlined, so that there is one copy for each number of rows.
#define NARROW_ROWS(ROWS)                                                                                          \
  static __attribute__((noinline)) void narrow_##ROWS(const float *const *x, size_t inputs, const float *a,         \
                                                      size_t columns, float scale, float *t, size_t t_width) {     \
    size_t c = 0;                                                                                                  \
    for (; c + TILE_COLUMNS <= columns; c += TILE_COLUMNS)                                                         \
      narrow_tile(x, ROWS, inputs, a + c * inputs, TILE_COLUMNS, scale, t + c, t_width);                           \
    for (; c < columns; c++) narrow_tile(x, ROWS, inputs, a + c * inputs, 1, scale, t + c, t_width);               \
  }
NARROW_ROWS(1)
NARROW_ROWS(2)
NARROW_ROWS(3)
NARROW_ROWS(4)

void lora_narrow_rows(const float *x, size_t inputs, const size_t *rows, size_t count, const float *a, size_t columns,
                      float scale, float *t, size_t t_width) {
  for (size_t first = 0; first < count; first += TILE_ROWS) {
    const size_t rest = count - first < TILE_ROWS ? count - first : TILE_ROWS;
    const float *x_rows[TILE_ROWS];
    for (size_t r = 0; r < rest; r++) x_rows[r] = x + rows[first + r] * inputs;
    float *to = t + first * t_width;
    if (rest == 4) narrow_4(x_rows, inputs, a, columns, scale, to, t_width);
    else if (rest == 3) narrow_3(x_rows, inputs, a, columns, scale, to, t_width);
    else if (rest == 2) narrow_2(x_rows, inputs, a, columns, scale, to, t_width);
    else narrow_1(x_rows, inputs, a, columns, scale, to, t_width);
  }
}

// --- t · B ---

enum { WIDE = LANES == 8 ? 2 : 4 };  // vectors of outputs at once: their sums fit the registers

// y of one vector: `count` <= LANES numbers.
INLINE void finish(float *y, const float *residual, Lanes sum, bool sums, bool adds, size_t count) {
  Lanes result = sum;
  if (adds) result = sums ? lanes_add(load_within(y, 0, count), sum) : load_within(y, 0, count);
  if (residual != NULL) result = lanes_add(load_within(residual, 0, count), result);
  lanes_store_some(y, result, count);
}

// Outputs of `vectors` vectors, the last of them with `last` numbers.
INLINE void widen_tile(const float *t, size_t t_width, size_t columns, const float *b, size_t b_width,
                       float *const *y, const float *const *residual, const size_t rows, const size_t vectors,
                       size_t last, bool adds) {
  Lanes sums[TILE_ROWS][WIDE];
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) sums[r][v] = lanes_all(0);
  }
  for (size_t c = 0; c < columns; c++) {
    const float *factors = b + c * b_width;
    __builtin_prefetch(factors + b_width * columns);  // the next panel
    Lanes factor[WIDE];
    UNROLLED for (size_t v = 0; v < vectors; v++) {
      factor[v] = load_within(factors + v * LANES, 0, v + 1 < vectors ? LANES : last);
    }
    UNROLLED for (size_t r = 0; r < rows; r++) {
      const Lanes value = lanes_all(t[r * t_width + c]);
      UNROLLED for (size_t v = 0; v < vectors; v++) sums[r][v] = lanes_plus(sums[r][v], value, factor[v]);
    }
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) {
      const float *more = residual[r] == NULL ? NULL : residual[r] + v * LANES;
      finish(y[r] + v * LANES, more, sums[r][v], columns > 0, adds, v + 1 < vectors ? LANES : last);
    }
  }
}

#define WIDEN_ROWS(ROWS)                                                                                           \
  static __attribute__((noinline)) void widen_##ROWS(const float *t, size_t t_width, size_t columns,               \
                                                     const float *b, size_t b_width, const size_t *rows,           \
                                                     const LoraTarget *to) {                                       \
    float *y[ROWS];                                                                                                \
    const float *residual[ROWS];                                                                                   \
    for (size_t first = 0; first < to->outputs;) {                                                                 \
      for (size_t r = 0; r < ROWS; r++) {                                                                          \
        y[r] = to->y + rows[r] * to->width + first;                                                                \
        residual[r] = to->residual == NULL ? NULL : to->residual + rows[r] * to->width + first;                    \
      }                                                                                                            \
      const size_t rest = to->outputs - first;                                                                     \
      if (rest >= WIDE * LANES) {                                                                                  \
        widen_tile(t, t_width, columns, b + first, b_width, y, residual, ROWS, WIDE, LANES, to->adds);             \
        first += WIDE * LANES;                                                                                     \
      } else if (rest >= 2 * LANES) {                                                                              \
        widen_tile(t, t_width, columns, b + first, b_width, y, residual, ROWS, 2, LANES, to->adds);                \
        first += 2 * LANES;                                                                                        \
      } else {                                                                                                     \
        const size_t last = rest < LANES ? rest : LANES;                                                           \
        widen_tile(t, t_width, columns, b + first, b_width, y, residual, ROWS, 1, last, to->adds);                 \
        first += last;                                                                                             \
      }                                                                                                            \
    }                                                                                                              \
  }
WIDEN_ROWS(1)
WIDEN_ROWS(2)
WIDEN_ROWS(3)
WIDEN_ROWS(4)

void lora_widen_rows(const float *t, size_t t_width, size_t columns, const float *b, size_t b_width, const size_t *rows,
                     size_t count, const LoraTarget *target) {
  for (size_t first = 0; first < count; first += TILE_ROWS) {
    const size_t rest = count - first < TILE_ROWS ? count - first : TILE_ROWS;
    const float *from = t + first * t_width;
    if (rest == 4) widen_4(from, t_width, columns, b, b_width, rows + first, target);
    else if (rest == 3) widen_3(from, t_width, columns, b, b_width, rows + first, target);
    else if (rest == 2) widen_2(from, t_width, columns, b, b_width, rows + first, target);
    else widen_1(from, t_width, columns, b, b_width, rows + first, target);
  }
}
