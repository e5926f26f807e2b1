#include "attention/store.h"

#include <string.h>

#include "rows/half.h"
#include "rows/rotary.h"

// to[d][i] = from[i][d] for four i and d, and for any, in elements of two or four bytes. `Four` are four elements.
#define TRANSPOSE(name, Element, Four, Index) \
  static void name##_four(const Element *from, size_t from_stride, Element *to, size_t to_stride) { \
    const Four a = *(const Four *)from, b = *(const Four *)(from + from_stride); \
    const Four c = *(const Four *)(from + 2 * from_stride), d = *(const Four *)(from + 3 * from_stride); \
    const Index low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7}; \
    const Four ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low); \
    const Four ab_high = __builtin_shuffle(a, b, high), cd_high = __builtin_shuffle(c, d, high); \
    *(Four *)to = __builtin_shuffle(ab, cd, first); \
    *(Four *)(to + to_stride) = __builtin_shuffle(ab, cd, last); \
    *(Four *)(to + 2 * to_stride) = __builtin_shuffle(ab_high, cd_high, first); \
    *(Four *)(to + 3 * to_stride) = __builtin_shuffle(ab_high, cd_high, last); \
  } \
  static void name(const Element *from, size_t from_stride, size_t rows, size_t columns, Element *to, \
                   size_t to_stride) { \
    size_t i = 0; \
    for (; i + 4 <= rows; i += 4) { \
      size_t d = 0; \
      for (; d + 4 <= columns; d += 4) { \
        name##_four(from + i * from_stride + d, from_stride, to + d * to_stride + i, to_stride); \
      } \
      for (; d < columns; d++) { \
        for (size_t j = i; j < i + 4; j++) to[d * to_stride + j] = from[j * from_stride + d]; \
      } \
    } \
    for (; i < rows; i++) { \
      for (size_t d = 0; d < columns; d++) to[d * to_stride + i] = from[i * from_stride + d]; \
    } \
  }

typedef float F4 __attribute__((vector_size(16), aligned(4)));
typedef int32_t I4 __attribute__((vector_size(16)));
typedef uint16_t H4 __attribute__((vector_size(8), aligned(2)));
typedef int16_t S4 __attribute__((vector_size(8)));
TRANSPOSE(transpose_floats, float, F4, I4)
TRANSPOSE(transpose_halves, uint16_t, H4, S4)

// Enough for one head of any shape that has tiles (attention/tile-lanes.c).
#define SCRATCH_NUMBERS 8192
#define MOST_SCRATCH_ROWS 16

// Keys of one head, `count` rows from `row` on, to places in a block, the first of which is `to`.
static void store_keys(const Call *call, size_t row, size_t count, size_t head, void *to) {
  const size_t block = call->shape->block, head_dim = call->shape->head_dim, pairs = call->turned / 2;
  const size_t fitting = SCRATCH_NUMBERS / head_dim, most = fitting < MOST_SCRATCH_ROWS ? fitting : MOST_SCRATCH_ROWS;
  float turned[SCRATCH_NUMBERS];
  uint16_t halves[SCRATCH_NUMBERS];
  for (size_t first = 0; first < count; first += most) {
    const size_t rows = count - first < most ? count - first : most;
    const float *from = call->k + (row + first) * call->k_stride + head * head_dim;
    size_t stride = call->k_stride;
    if (pairs) {
      for (size_t i = 0; i < rows; i++) {
        const size_t angles = (row + first + i) * pairs;
        rotate_row(from + i * stride, head_dim, call->cos + angles, call->sin + angles, call->turned,
                   turned + i * head_dim);
      }
      from = turned;
      stride = head_dim;
    }
    if (!call->shape->half) {
      transpose_floats(from, stride, rows, head_dim, (float *)to + first, block);
      continue;
    }
    for (size_t i = 0; i < rows; i++) halves_narrow(from + i * stride, head_dim, halves + i * head_dim);
    transpose_halves(halves, head_dim, rows, head_dim, (uint16_t *)to + first, block);
  }
}

// Values of one head likewise.
static void store_values(const Call *call, size_t row, size_t count, size_t head, void *to) {
  const size_t head_dim = call->shape->head_dim;
  const float *from = call->v + row * call->v_stride + head * head_dim;
  for (size_t i = 0; i < count; i++, from += call->v_stride) {
    if (call->shape->half) {
      halves_narrow(from, head_dim, (uint16_t *)to + i * head_dim);
    } else {
      memcpy((float *)to + i * head_dim, from, head_dim * sizeof(float));
    }
  }
}

void attention_store(const Call *call, const Span *span, int64_t from, int64_t to, size_t first_head,
                     size_t end_head) {
  const AttentionShape *shape = call->shape;
  const size_t block = shape->block, head_dim = shape->head_dim, bytes = attention_element_bytes(shape);
  while (from < to) {
    const size_t position = (size_t)(span->start + from), place = position % block;
    const size_t rest = (size_t)(to - from), count = rest < block - place ? rest : block - place;
    const size_t row = (size_t)(span->first_row + from);
    const size_t before = (size_t)span->blocks[position / block] * attention_block_elements(shape);
    char *keys = (char *)call->cache + before * bytes, *values = keys + shape->kv_heads * head_dim * block * bytes;
    for (size_t head = first_head; head < end_head; head++) {
      const size_t of_head = head * head_dim * block;
      store_keys(call, row, count, head, keys + (of_head + place) * bytes);
      store_values(call, row, count, head, values + (of_head + place * head_dim) * bytes);
    }
    from += (int64_t)count;
  }
}
