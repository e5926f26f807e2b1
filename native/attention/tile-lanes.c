// Attention of a tile (attention/tile.h).
#include <string.h>

#include "attention/product.h"
#include "attention/softmax.h"
#include "attention/tile.h"
#include "rows/half.h"
#include "rows/rotary.h"

// Scratch memory lies on the stack: 98 KiB, and 128 KiB for keys and values of one block, widened.
#define SCRATCH_FLOATS 25088
#define WIDE_FLOATS 32768
// With more rows than this, halves are widened once for all of them.
#define MOST_ROWS_OF_HALVES MOST_ROWS
// More rows than this would push a block's keys and values out of the nearest cache. Fewer would widen halves more often.
#if defined(VECTORS_AVX512) || defined(VECTORS_AVX2)
#define TILE_ROWS 48
#elif defined(VECTORS_NEON)
#define TILE_ROWS 96
#endif

INLINE size_t whole_vectors(size_t lanes) { return (lanes + 15) & ~(size_t)15; }

// Sums of a group for one row: [head_dim, rounded up] weighted values, 16 sums of weights (one of them after the
// group's end), the octave.
INLINE size_t sums_stride(const AttentionShape *shape) { return whole_vectors(shape->head_dim) + 32; }
INLINE float *sums_weights(const AttentionShape *shape, float *sums) { return sums + whole_vectors(shape->head_dim); }
INLINE float *sums_octave(const AttentionShape *shape, float *sums) { return sums_weights(shape, sums) + 16; }

size_t tile_sums_floats(const AttentionShape *shape, size_t rows) { return rows * sums_stride(shape); }

size_t tile_most_rows(const AttentionShape *shape) {
  const size_t strip = MOST_ROWS * whole_vectors(shape->block);
  const size_t row = whole_vectors(shape->head_dim) + 2 * sums_stride(shape);
  if (strip + row > SCRATCH_FLOATS) return 0;
  const size_t rows = (SCRATCH_FLOATS - strip) / row;
  return rows < TILE_ROWS ? rows : TILE_ROWS;
}

// What one tile's rows share while a block is attended to.
typedef struct {
  const AttentionShape *shape;
  const int64_t *positions;  // of each row
  const float *queries;      // [rows][head_dim, rounded up]
  float *scores;             // [MOST_ROWS][block, rounded up]
  float *sums;               // [rows][sums_stride]
  float *wide;               // [2][head_dim * block], or NULL: halves are widened in passing
} Rows;

// One head's part of a block: floats, or halves.
typedef struct {
  const void *keys, *values;
  const void *next_keys;  // of the next block, NULL = it is not needed
  bool half;
} HeadBlock;

INLINE size_t clamp(int64_t x, size_t most) { return x < 0 ? 0 : (uint64_t)x > most ? most : (size_t)x; }

// What rows of a strip see of a block: positions from .. to - 1, none if from >= to.
typedef struct {
  size_t from[MOST_ROWS], to[MOST_ROWS];
} Seen;

INLINE Seen seen_positions(const Rows *rows, size_t first, size_t count, int64_t base) {
  const size_t block = rows->shape->block, window = rows->shape->window;
  Seen seen;
  for (size_t r = 0; r < count; r++) {
    const int64_t end = rows->positions[first + r] + 1 - base;
    seen.to[r] = clamp(end, block);
    seen.from[r] = window ? clamp(end - (int64_t)window, block) : 0;
  }
  return seen;
}

// Rows first .. first + count - 1 add their weighted values of positions low .. high - 1. `weights`: of the first row.
INLINE void add_values(const Rows *rows, size_t first, size_t count, const float *weights, size_t low, size_t high,
                       const HeadBlock *of, const void *ahead) {
  if (low >= high) return;
  const size_t head_dim = rows->shape->head_dim, stride = sums_stride(rows->shape);
  const Product weighted = {.depth = high - low,
                            .a = weights + low,
                            .a_stride = whole_vectors(rows->shape->block),
                            .b = element_at(of->values, low * head_dim, of->half),
                            .b_stride = head_dim,
                            .b_half = of->half,
                            .c = rows->sums + first * stride,
                            .c_stride = stride,
                            .add = true,
                            .ahead = ahead};
  product(weighted, count, head_dim);
}

// The same for every row by itself, of what it sees before or after the positions that all see. A row takes no part in the
// products of others: its weight of 0 would not hide a NaN of a later position.
static void add_values_apart(const Rows *rows, size_t first, size_t count, const Seen *seen, size_t low, size_t high,
                             const HeadBlock *of) {
  const size_t stride = whole_vectors(rows->shape->block);
  for (size_t r = 0, end; r < count; r = end) {
    for (end = r + 1; end < count && seen->from[end] == seen->from[r] && seen->to[end] == seen->to[r];) end++;
    const size_t from = seen->from[r] > low ? seen->from[r] : low, to = seen->to[r] < high ? seen->to[r] : high;
    add_values(rows, first + r, end - r, rows->scores + r * stride, from, to, of, NULL);
  }
}

// Rows first .. first + count - 1 attend to the block whose first position is `base`. The first rows fetch the next
// block's keys into the cache, if there is one.
static void strip_attend(const Rows *rows, size_t first, size_t count, int64_t base, const HeadBlock *of) {
  const AttentionShape *shape = rows->shape;
  const size_t block = shape->block, head_dim = shape->head_dim;
  const Seen seen = seen_positions(rows, first, count, base);
  size_t low = 0, high = block, last = 0;  // all rows see low .. high - 1; some see last - 1
  for (size_t r = 0; r < count; r++) {
    if (seen.from[r] > low) low = seen.from[r];
    if (seen.to[r] < high) high = seen.to[r];
    if (seen.from[r] < seen.to[r] && seen.to[r] > last) last = seen.to[r];
  }
  if (last == 0) return;
  if (low >= high) low = high = 0;
  const size_t end = whole_vectors(last), scores_stride = whole_vectors(block);
  const size_t query_stride = whole_vectors(head_dim), stride = sums_stride(shape);
  const Product scores = {.depth = head_dim,
                          .a = rows->queries + first * query_stride,
                          .a_stride = query_stride,
                          .b = of->keys,
                          .b_stride = block,
                          .b_half = of->half,
                          .c = rows->scores,
                          .c_stride = scores_stride,
                          .add = false,
                          .ahead = first ? NULL : of->values};
  product(scores, count, end < block ? end : block);
  float *sums = rows->sums + first * stride;
  for (size_t r = 0; r < count; r++) {
    float *row = sums + r * stride;
    const float keep = softmax_block(shape, rows->scores + r * scores_stride, seen.from[r], seen.to[r], end,
                                     sums_octave(shape, row), sums_weights(shape, row));
    if (keep == 1) continue;
    for (size_t d = 0; d < head_dim; d += LANES) lanes_store(row + d, lanes_mul(lanes_load(row + d), lanes_all(keep)));
  }
  if (low > 0) add_values_apart(rows, first, count, &seen, 0, low, of);
  add_values(rows, first, count, rows->scores, low, high, of, first ? NULL : of->next_keys);
  if (high < last) add_values_apart(rows, first, count, &seen, high, last, of);
}

INLINE const void *block_keys(const Tile *tile, size_t block) {
  const AttentionShape *shape = tile->shape;
  const size_t before = tile->kv_head * shape->head_dim * shape->block;
  return element_at(tile->cache, (size_t)tile->blocks[block] * attention_block_elements(shape) + before, shape->half);
}

// `next`: whether the next block is needed too.
static HeadBlock head_block(const Tile *tile, const Rows *rows, size_t block, bool next) {
  const AttentionShape *shape = tile->shape;
  const size_t elements = shape->head_dim * shape->block;
  const void *keys = block_keys(tile, block), *values = element_at(keys, shape->kv_heads * elements, shape->half);
  if (!rows->wide) return (HeadBlock){keys, values, next ? block_keys(tile, block + 1) : NULL, shape->half};
  halves_widen(keys, elements, rows->wide);
  halves_widen(values, elements, rows->wide + elements);
  return (HeadBlock){rows->wide, rows->wide + elements, NULL, false};
}

static void group_attend(const Tile *tile, const Rows *rows, size_t row_count, size_t group, int64_t lowest,
                         int64_t highest) {
  const AttentionShape *shape = tile->shape;
  const size_t stride = sums_stride(shape);
  for (size_t r = 0; r < row_count; r++) {
    float *row = rows->sums + r * stride;
    memset(row, 0, stride * sizeof(float));
    *sums_octave(shape, row) = NO_OCTAVE;
  }
  for (size_t b = group * GROUP_BLOCKS; b < (group + 1) * GROUP_BLOCKS; b++) {
    const int64_t base = (int64_t)(b * shape->block);
    if (base > highest) break;
    if (base + (int64_t)shape->block <= lowest) continue;
    const HeadBlock of = head_block(tile, rows, b, base + (int64_t)shape->block <= highest);
    for (size_t r = 0; r < row_count; r += MOST_ROWS) {
      const size_t rest = row_count - r;
      strip_attend(rows, r, rest < MOST_ROWS ? rest : MOST_ROWS, base, &of);
    }
  }
  for (size_t r = 0; r < row_count; r++) {
    float *weights = sums_weights(shape, rows->sums + r * stride);
    weights[0] = sum_of_sixteen(weights);
  }
}

// total += group, both relative to the higher octave.
static void sums_join(const AttentionShape *shape, float *total, const float *group) {
  const size_t weights = whole_vectors(shape->head_dim), octave = weights + 16;
  if (group[octave] == NO_OCTAVE) return;
  const float highest = total[octave] > group[octave] ? total[octave] : group[octave];
  const float keep = power_of_octaves(total[octave] - highest), add = power_of_octaves(group[octave] - highest);
  for (size_t d = 0; d < weights; d += LANES) {
    const Lanes kept = lanes_mul(lanes_load(total + d), lanes_all(keep));
    lanes_store(total + d, lanes_plus(kept, lanes_load(group + d), lanes_all(add)));
  }
  total[weights] = total[weights] * keep + group[weights] * add;
  total[octave] = highest;
}

// out = values / weights. Adding zero makes -0 to 0, so that no product with a weight of 0 shows.
static void sums_write(const Tile *tile, const float *sums, size_t row) {
  const size_t head_dim = tile->shape->head_dim;
  float *out = tile->tokens[row / tile->heads].out + (tile->first_head + row % tile->heads) * head_dim;
  const Lanes weights = lanes_all(sums[whole_vectors(head_dim)]);
  for (size_t d = 0; d < head_dim; d += LANES) {
    const Lanes mean = lanes_add(lanes_div(lanes_load(sums + d), weights), lanes_all(0));
    lanes_store_some(out + d, mean, head_dim - d);
  }
}

// total = NULL: the groups' sums go to `sums`, one after the other. Otherwise `sums` is overwritten and joined to
// `total`.
static void groups_attend(const Tile *tile, size_t first_group, size_t end_group, float *scratch, float *sums,
                          float *total) {
  const AttentionShape *shape = tile->shape;
  const size_t head_dim = shape->head_dim, width = whole_vectors(head_dim), stride = sums_stride(shape);
  const size_t row_count = tile->count * tile->heads;
  int64_t positions[TILE_ROWS], lowest = INT64_MAX, highest = -1;
  float *queries = scratch + MOST_ROWS * whole_vectors(shape->block);
  for (size_t r = 0; r < row_count; r++) {
    const TileToken *token = tile->tokens + r / tile->heads;
    const int64_t position = token->position, first = shape->window ? position + 1 - (int64_t)shape->window : 0;
    positions[r] = position;
    if (first < lowest) lowest = first;
    if (position > highest) highest = position;
    const float *query = token->q + (tile->first_head + r % tile->heads) * head_dim;
    rotate_row(query, head_dim, token->cos, token->sin, tile->turned, queries + r * width);
  }
  _Alignas(64) float wide[WIDE_FLOATS];
  const bool widened = shape->half && row_count > MOST_ROWS_OF_HALVES && 2 * head_dim * shape->block <= WIDE_FLOATS;
  Rows rows = {shape, positions, queries, scratch, sums, widened ? wide : NULL};
  for (size_t group = first_group; group < end_group; group++) {
    group_attend(tile, &rows, row_count, group, lowest, highest);
    if (!total) {
      rows.sums += row_count * stride;
    } else if (group == first_group) {
      memcpy(total, sums, row_count * stride * sizeof(float));
    } else {
      for (size_t r = 0; r < row_count; r++) sums_join(shape, total + r * stride, sums + r * stride);
    }
  }
}

void tile_attend(const Tile *tile, size_t first_group, size_t end_group) {
  _Alignas(64) float scratch[SCRATCH_FLOATS];
  const AttentionShape *shape = tile->shape;
  const size_t row_count = tile->count * tile->heads, stride = sums_stride(shape);
  float *sums = scratch + MOST_ROWS * whole_vectors(shape->block) + row_count * whole_vectors(shape->head_dim);
  // One group needs no joining.
  float *total = end_group - first_group > 1 ? sums + row_count * stride : NULL;
  groups_attend(tile, first_group, end_group, scratch, sums, total);
  for (size_t r = 0; r < row_count; r++) sums_write(tile, (total ? total : sums) + r * stride, r);
}

void tile_sum_groups(const Tile *tile, size_t first_group, size_t end_group, float *sums) {
  _Alignas(64) float scratch[SCRATCH_FLOATS];
  groups_attend(tile, first_group, end_group, scratch, sums, NULL);
}

void tile_join_groups(const Tile *tile, float *sums, size_t groups) {
  const AttentionShape *shape = tile->shape;
  const size_t row_count = tile->count * tile->heads, stride = sums_stride(shape);
  for (size_t r = 0; r < row_count; r++) {
    float *total = sums + r * stride;
    for (size_t g = 1; g < groups; g++) sums_join(shape, total, total + g * row_count * stride);
    sums_write(tile, total, r);
  }
}
