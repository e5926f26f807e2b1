#include "attention-store.h"

#include <string.h>

#include "rotary.h"

typedef float F4 __attribute__((vector_size(16), aligned(4)));
typedef int32_t I4 __attribute__((vector_size(16)));

// to[d * to_stride + i] = from[i * from_stride + d] for four i and d.
static void transpose_four(const float *from, size_t from_stride, float *to, size_t to_stride) {
  const F4 a = *(const F4 *)from, b = *(const F4 *)(from + from_stride);
  const F4 c = *(const F4 *)(from + 2 * from_stride), d = *(const F4 *)(from + 3 * from_stride);
  const I4 low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7};
  const F4 ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low);
  const F4 ab_high = __builtin_shuffle(a, b, high), cd_high = __builtin_shuffle(c, d, high);
  *(F4 *)to = __builtin_shuffle(ab, cd, first);
  *(F4 *)(to + to_stride) = __builtin_shuffle(ab, cd, last);
  *(F4 *)(to + 2 * to_stride) = __builtin_shuffle(ab_high, cd_high, first);
  *(F4 *)(to + 3 * to_stride) = __builtin_shuffle(ab_high, cd_high, last);
}

// to[d][i] = from[i][d].
static void transpose(const float *from, size_t from_stride, size_t rows, size_t columns, float *to, size_t to_stride) {
  size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    size_t d = 0;
    for (; d + 4 <= columns; d += 4) {
      transpose_four(from + i * from_stride + d, from_stride, to + d * to_stride + i, to_stride);
    }
    for (; d < columns; d++) {
      for (size_t j = i; j < i + 4; j++) to[d * to_stride + j] = from[j * from_stride + d];
    }
  }
  for (; i < rows; i++) {
    for (size_t d = 0; d < columns; d++) to[d * to_stride + i] = from[i * from_stride + d];
  }
}

// Enough for one head of any shape that has tiles (attention-kernel.h).
#define TURNED_FLOATS 8192
#define MOST_TURNED_ROWS 16

// Keys of one head, `count` rows from `row` on, to places in a block.
static void store_keys(const Call *call, size_t row, size_t count, size_t head, float *to) {
  const size_t block = call->shape->block, head_dim = call->shape->head_dim, half = call->turned / 2;
  const float *from = call->k + row * call->k_stride + head * head_dim;
  if (!half) {
    transpose(from, call->k_stride, count, head_dim, to, block);
    return;
  }
  float turned[TURNED_FLOATS];
  const size_t fitting = TURNED_FLOATS / head_dim, most = fitting < MOST_TURNED_ROWS ? fitting : MOST_TURNED_ROWS;
  for (size_t first = 0; first < count; first += most) {
    const size_t rows = count - first < most ? count - first : most;
    for (size_t i = 0; i < rows; i++) {
      const size_t angles = (row + first + i) * half;
      rotate_row(from + (first + i) * call->k_stride, head_dim, call->cos + angles, call->sin + angles, call->turned,
                 turned + i * head_dim);
    }
    transpose(turned, head_dim, rows, head_dim, to + first, block);
  }
}

void attention_store(const Call *call, const Span *span, int64_t from, int64_t to, size_t first_head,
                     size_t end_head) {
  const AttentionShape *shape = call->shape;
  const size_t block = shape->block, head_dim = shape->head_dim;
  while (from < to) {
    const size_t position = (size_t)(span->start + from), place = position % block;
    const size_t rest = (size_t)(to - from), count = rest < block - place ? rest : block - place;
    const size_t row = (size_t)(span->first_row + from);
    float *keys = call->cache + (size_t)span->blocks[position / block] * attention_block_floats(shape);
    float *values = keys + shape->kv_heads * head_dim * block;
    for (size_t head = first_head; head < end_head; head++) {
      const size_t floats = head * head_dim * block;
      const float *v = call->v + row * call->v_stride + head * head_dim;
      store_keys(call, row, count, head, keys + floats + place);
      for (size_t i = 0; i < count; i++) {
        memcpy(values + floats + (place + i) * head_dim, v + i * call->v_stride, head_dim * sizeof(float));
      }
    }
    from += (int64_t)count;
  }
}
