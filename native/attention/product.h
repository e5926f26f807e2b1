// C[rows][columns] (+)= A[rows][depth] · B[depth][columns], for few rows: both products of attention. Every element of
// C is one chain of fused multiply-adds in the order of depth, so its bits do not depend on the rows and columns beside
// it. B may be numbers of two bytes, which are widened on the way: the bits are those of the widened B. Rows of C have
// room for whole vectors of 16; those of A and B are not read beyond their end.
#ifndef FLYWHEEL_ATTENTION_PRODUCT_H
#define FLYWHEEL_ATTENTION_PRODUCT_H

#include <stdbool.h>

#include "vectors/vectors.h"

typedef struct {
  size_t depth;
  const float *a;
  size_t a_stride;
  const void *b;  // floats, or halves
  size_t b_stride;
  bool b_half;
  float *c;
  size_t c_stride;
  bool add;           // to what C holds; otherwise to zero
  const void *ahead;  // NULL, or memory in the shape of B that is fetched into the cache meanwhile
} Product;

// Rows and vectors whose sums fit the registers.
#if defined(VECTORS_AVX512) || defined(VECTORS_AVX2)
#define MOST_ROWS 6
#define MOST_VECTORS 8
#define OWN_FUNCTION __attribute__((noinline))
#elif defined(VECTORS_NEON)
#define MOST_ROWS 4
#define MOST_VECTORS 16
// In the compiler's order of instructions the sums would need more registers than there are.
#define OWN_FUNCTION __attribute__((noinline, optimize("no-schedule-insns")))
#endif

// The sums of a panel, in registers.
typedef Lanes Sums[MOST_ROWS][MOST_VECTORS];

INLINE const void *element_at(const void *elements, size_t index, const bool half) {
  return (const char *)elements + index * (half ? sizeof(uint16_t) : sizeof(float));
}

INLINE Lanes elements_load(const void *from, const bool half) { return half ? lanes_widen(from) : lanes_load(from); }

INLINE Lanes elements_load_some(const void *from, size_t count, const bool half) {
  return half ? lanes_widen_some(from, count) : lanes_load_some(from, count);
}

// Fetches what lies in `ahead` where this panel's row k lies in B.
INLINE void product_fetch(Product p, const size_t vectors, const bool half, size_t k) {
  const size_t line = half ? 32 : 16;
  UNROLLED for (size_t v = 0; v < vectors * LANES; v += line) {
    __builtin_prefetch(element_at(p.ahead, k * p.b_stride + v, half), 0, 3);
  }
}

// One step of depth: c[r][v] += a[r][k] * b[k][v].
INLINE void product_step(Product p, const size_t rows, const size_t vectors, const bool half, const size_t some,
                         size_t k, Sums c) {
  Lanes b[MOST_VECTORS];
  UNROLLED for (size_t v = 0; v < vectors; v++) {
    const void *from = element_at(p.b, k * p.b_stride + v * LANES, half);
    b[v] = some ? elements_load_some(from, some, half) : elements_load(from, half);
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    const Lanes a = lanes_all(p.a[r * p.a_stride + k]);
    UNROLLED for (size_t v = 0; v < vectors; v++) c[r][v] = lanes_plus(c[r][v], a, b[v]);
  }
}

#if defined(VECTORS_NEON)
// Halves are widened one step before they are multiplied: the processor does not look far enough ahead by itself.
// In assembly, because the compiler would move a conversion to where its result is used.
#define WIDEN(to, from) __asm__ volatile("fcvtl %0.4s, %1.4h" : "=w"(to) : "w"(vld1_u16(from)))
#define MULTIPLY(sum, b, a, lane) __asm__ volatile("fmla %0.4s, %1.4s, %2.s[" #lane "]" : "+w"(sum) : "w"(b), "w"(a))

// Four steps over halves. b: those of step k; in the end, those of step `next`.
#define HALF_STEP_OF_FOUR(i, next_k) \
  UNROLLED for (size_t v = 0; v < vectors; v++) { \
    UNROLLED for (size_t r = 0; r < rows; r++) MULTIPLY(c[r][v], b[v], a[r], i); \
    WIDEN(b[v], (const uint16_t *)p.b + (next_k) * p.b_stride + v * LANES); \
  }
INLINE void product_four_half_steps(Product p, const size_t rows, const size_t vectors, size_t k, size_t next, Sums c,
                                    Lanes *b) {
  Lanes a[MOST_ROWS];
  UNROLLED for (size_t r = 0; r < rows; r++) a[r] = lanes_load(p.a + r * p.a_stride + k);
  HALF_STEP_OF_FOUR(0, k + 1)
  HALF_STEP_OF_FOUR(1, k + 2)
  HALF_STEP_OF_FOUR(2, k + 3)
  HALF_STEP_OF_FOUR(3, next)
}

// Four steps: a vector holds a row's next four factors, and NEON multiplies by a lane of it.
#define STEP_OF_FOUR(i) \
  UNROLLED for (size_t v = 0; v < vectors; v++) { \
    const Lanes b = elements_load(element_at(p.b, (k + i) * p.b_stride + v * LANES, half), half); \
    UNROLLED for (size_t r = 0; r < rows; r++) c[r][v] = vfmaq_laneq_f32(c[r][v], b, a[r], i); \
  }
INLINE void product_four_steps(Product p, const size_t rows, const size_t vectors, const bool half, size_t k, Sums c) {
  Lanes a[MOST_ROWS];
  UNROLLED for (size_t r = 0; r < rows; r++) a[r] = lanes_load(p.a + r * p.a_stride + k);
  STEP_OF_FOUR(0)
  STEP_OF_FOUR(1)
  STEP_OF_FOUR(2)
  STEP_OF_FOUR(3)
}
#endif

// All steps for a panel of columns that fits the registers. some: 0, or how many lanes of the only vector exist.
INLINE void product_panel(Product p, const size_t rows, const size_t vectors, const bool half, const size_t some,
                          const bool fetch) {
  Sums c;
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) {
      c[r][v] = p.add ? lanes_load(p.c + r * p.c_stride + v * LANES) : lanes_all(0);
    }
  }
  size_t k = 0;
#if defined(VECTORS_NEON)
  if (!some) {
    Lanes widened[MOST_VECTORS];
    if (half && p.depth >= 4) {
      UNROLLED for (size_t v = 0; v < vectors; v++) widened[v] = lanes_widen((const uint16_t *)p.b + v * LANES);
    }
    for (; k + 4 <= p.depth; k += 4) {
      if (fetch) {
        UNROLLED for (size_t i = 0; i < 4; i++) product_fetch(p, vectors, half, k + i);
      }
      if (half) {
        product_four_half_steps(p, rows, vectors, k, k + 4 < p.depth ? k + 4 : k, c, widened);
      } else {
        product_four_steps(p, rows, vectors, half, k, c);
      }
    }
  }
#endif
  for (; k < p.depth; k++) {
    if (fetch) product_fetch(p, vectors, half, k);
    product_step(p, rows, vectors, half, some, k, c);
  }
  UNROLLED for (size_t r = 0; r < rows; r++) {
    UNROLLED for (size_t v = 0; v < vectors; v++) lanes_store(p.c + r * p.c_stride + v * LANES, c[r][v]);
  }
}

// Panels of `vectors` vectors while there are so many columns.
#define PANELS(rows, vectors, half) \
  for (; columns >= (vectors) * LANES; columns -= (vectors) * LANES) { \
    if (p.ahead) { \
      product_panel(p, rows, vectors, half, 0, true); \
      p.ahead = element_at(p.ahead, (vectors) * LANES, half); \
    } else { \
      product_panel(p, rows, vectors, half, 0, false); \
    } \
    p.b = element_at(p.b, (vectors) * LANES, half); \
    p.c += (vectors) * LANES; \
  }

#define PRODUCT(name, rows, widest, half) \
  static OWN_FUNCTION void name(Product p, size_t columns) { \
    if ((widest) > 8) PANELS(rows, widest > 8 ? widest : 1, half) \
    if ((widest) > 4) PANELS(rows, widest > 4 ? 8 : 1, half) \
    PANELS(rows, 4, half) \
    PANELS(rows, 2, half) \
    PANELS(rows, 1, half) \
    if (columns) product_panel(p, rows, 1, half, columns, false); \
  }

// `widest`: vectors of the widest panel, so many that sums do not wait for each other.
#define PRODUCT_OF_ROWS(rows, widest) \
  PRODUCT(product_of_##rows##_floats, rows, widest, false) \
  PRODUCT(product_of_##rows##_halves, rows, widest > 8 ? 8 : widest, true) \
  static inline void product_of_##rows(Product p, size_t columns) { \
    if (p.b_half) { \
      product_of_##rows##_halves(p, columns); \
    } else { \
      product_of_##rows##_floats(p, columns); \
    } \
  }

#if defined(VECTORS_AVX512)
PRODUCT_OF_ROWS(1, 8)
PRODUCT_OF_ROWS(2, 8)
PRODUCT_OF_ROWS(3, 4)
PRODUCT_OF_ROWS(4, 4)
PRODUCT_OF_ROWS(5, 4)
PRODUCT_OF_ROWS(6, 4)
#elif defined(VECTORS_AVX2)
PRODUCT_OF_ROWS(1, 8)
PRODUCT_OF_ROWS(2, 4)
PRODUCT_OF_ROWS(3, 4)
PRODUCT_OF_ROWS(4, 2)
PRODUCT_OF_ROWS(5, 2)
PRODUCT_OF_ROWS(6, 2)
#elif defined(VECTORS_NEON)
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
