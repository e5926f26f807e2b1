// C[rows][columns] (+)= A[rows][depth] · B[depth][columns], for few rows: both products of attention. Every element of
// C is one chain of fused multiply-adds in the order of depth, so its bits do not depend on the rows and columns beside
// it. Rows of C have room for whole vectors of 16; those of A and B are not read beyond their end.
#ifndef FLYWHEEL_ATTENTION_PRODUCT_H
#define FLYWHEEL_ATTENTION_PRODUCT_H

#include <stdbool.h>

#include "vectors.h"

typedef struct {
  size_t depth;
  const float *a;
  size_t a_stride;
  const float *b;
  size_t b_stride;
  float *c;
  size_t c_stride;
  bool add;            // to what C holds; otherwise to zero
  const float *ahead;  // NULL, or memory in the shape of B that is fetched into the cache meanwhile
} Product;

// Rows and vectors whose sums fit the registers.
#if defined(__x86_64__)
#define MOST_ROWS 6
#define MOST_VECTORS 8
#define OWN_FUNCTION __attribute__((noinline))
#elif defined(__aarch64__)
#define MOST_ROWS 4
#define MOST_VECTORS 16
// In the compiler's order of instructions the sums would need more registers than there are.
#define OWN_FUNCTION __attribute__((noinline, optimize("no-schedule-insns")))
#endif

// The sums of a panel, in registers.
typedef Lanes Sums[MOST_ROWS][MOST_VECTORS];

// Fetches what lies in `ahead` where this panel's row k lies in B.
INLINE void product_fetch(Product p, const size_t vectors, size_t k) {
  UNROLLED for (size_t v = 0; v < vectors * LANES; v += 16) __builtin_prefetch(p.ahead + k * p.b_stride + v, 0, 3);
}

// One step of depth: c[r][v] += a[r][k] * b[k][v].
INLINE void product_step(Product p, const size_t rows, const size_t vectors, const size_t some, size_t k, Sums c) {
  Lanes b[MOST_VECTORS];
  UNROLLED for (size_t v = 0; v < vectors; v++) {
    const float *from = p.b + k * p.b_stride + v * LANES;
    b[v] = some ? lanes_load_some(from, some) : lanes_load(from);
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    const Lanes a = lanes_all(p.a[r * p.a_stride + k]);
    UNROLLED for (size_t v = 0; v < vectors; v++) c[r][v] = lanes_plus(c[r][v], a, b[v]);
  }
}

#if defined(__aarch64__)
// Four steps: a vector holds a row's next four factors, and NEON multiplies by a lane of it.
#define STEP_OF_FOUR(i) \
  UNROLLED for (size_t v = 0; v < vectors; v++) { \
    const Lanes b = lanes_load(p.b + (k + i) * p.b_stride + v * LANES); \
    UNROLLED for (size_t r = 0; r < rows; r++) c[r][v] = vfmaq_laneq_f32(c[r][v], b, a[r], i); \
  }
INLINE void product_four_steps(Product p, const size_t rows, const size_t vectors, size_t k, Sums c) {
  Lanes a[MOST_ROWS];
  UNROLLED for (size_t r = 0; r < rows; r++) a[r] = lanes_load(p.a + r * p.a_stride + k);
  STEP_OF_FOUR(0)
  STEP_OF_FOUR(1)
  STEP_OF_FOUR(2)
  STEP_OF_FOUR(3)
}
#endif

// All steps for a panel of columns that fits the registers. some: 0, or how many lanes of the only vector exist.
INLINE void product_panel(Product p, const size_t rows, const size_t vectors, const size_t some, const bool fetch) {
  Sums c;
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) {
      c[r][v] = p.add ? lanes_load(p.c + r * p.c_stride + v * LANES) : lanes_all(0);
    }
  }
  size_t k = 0;
#if defined(__aarch64__)
  if (!some) {
    for (; k + 4 <= p.depth; k += 4) {
      if (fetch) {
        UNROLLED for (size_t i = 0; i < 4; i++) product_fetch(p, vectors, k + i);
      }
      product_four_steps(p, rows, vectors, k, c);
    }
  }
#endif
  for (; k < p.depth; k++) {
    if (fetch) product_fetch(p, vectors, k);
    product_step(p, rows, vectors, some, k, c);
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) lanes_store(p.c + r * p.c_stride + v * LANES, c[r][v]);
  }
}

// Panels of `vectors` vectors while there are so many columns.
#define PANELS(rows, vectors) \
  for (; columns >= (vectors) * LANES; columns -= (vectors) * LANES) { \
    if (p.ahead) { \
      product_panel(p, rows, vectors, 0, true); \
      p.ahead += (vectors) * LANES; \
    } else { \
      product_panel(p, rows, vectors, 0, false); \
    } \
    p.b += (vectors) * LANES; \
    p.c += (vectors) * LANES; \
  }

// `widest`: vectors of the widest panel, so many that sums do not wait for each other.
#define PRODUCT_OF_ROWS(rows, widest) \
  static OWN_FUNCTION void product_of_##rows(Product p, size_t columns) { \
    if ((widest) > 8) PANELS(rows, widest > 8 ? widest : 1) \
    if ((widest) > 4) PANELS(rows, widest > 4 ? 8 : 1) \
    PANELS(rows, 4) \
    PANELS(rows, 2) \
    PANELS(rows, 1) \
    if (columns) product_panel(p, rows, 1, columns, false); \
  }

#if defined(__x86_64__)
PRODUCT_OF_ROWS(1, 8)
PRODUCT_OF_ROWS(2, 8)
PRODUCT_OF_ROWS(3, 4)
PRODUCT_OF_ROWS(4, 4)
PRODUCT_OF_ROWS(5, 4)
PRODUCT_OF_ROWS(6, 4)
#elif defined(__aarch64__)
PRODUCT_OF_ROWS(1, 16)
PRODUCT_OF_ROWS(2, 8)
PRODUCT_OF_ROWS(3, 4)
PRODUCT_OF_ROWS(4, 4)
#endif

static inline void product(Product p, size_t rows, size_t columns) {
  switch (rows) {
    case 1: product_of_1(p, columns); break;
    case 2: product_of_2(p, columns); break;
    case 3: product_of_3(p, columns); break;
    case 4: product_of_4(p, columns); break;
#if MOST_ROWS > 4
    case 5: product_of_5(p, columns); break;
    case 6: product_of_6(p, columns); break;
#endif
  }
}

#endif
