// Collects the rows that use the same adapter.
#include "adapters/blocks.h"

#include <stdlib.h>

void blocks_free(Blocks *blocks) {
  free(blocks->list);
  free(blocks->rows);
  free(blocks->t);
}

// Memory for so many rows, and so many numbers of t.
static bool make(Blocks *blocks, size_t rows, size_t t_count) {
  *blocks = (Blocks){.list = malloc((rows + 1) * sizeof *blocks->list),
                     .rows = malloc((rows + 1) * sizeof *blocks->rows)};
  if (t_count > 0) blocks->t = malloc(t_count * sizeof *blocks->t);
  if (blocks->list != NULL && blocks->rows != NULL && (t_count == 0 || blocks->t != NULL)) return true;
  blocks_free(blocks);
  return false;
}

// Cuts `all`, rows of one adapter, into blocks of at most `most` rows.
static void cut(Blocks *blocks, const Block *all, size_t t_width, size_t most) {
  for (size_t first = 0; first < all->count; first += most) {
    Block *block = &blocks->list[blocks->count++];
    *block = *all;
    block->rows += first;
    block->t += first * t_width;
    block->count = all->count - first < most ? all->count - first : most;
  }
}

bool blocks_of_one(Blocks *blocks, const Block *like, size_t rows) {
  if (!make(blocks, rows, 0)) return false;
  Block all = *like;
  all.rows = blocks->rows;
  all.count = rows;
  for (size_t row = 0; row < rows; row++) blocks->rows[row] = row;
  cut(blocks, &all, like->columns, BLOCK_ROWS);
  return true;
}

static size_t rank_at(const float *factors, int64_t begin) {
  return begin < 0 ? 0 : (size_t)factors[begin + LORA_RANK];
}

static Block block_of(const LoraMap *map, const float *factors, int64_t begin) {
  if (begin < 0) return (Block){0};
  const float *adapter = factors + begin;
  const size_t rank = rank_at(factors, begin);
  const float *a = adapter + map->header + rank * map->place;
  return (Block){.a = a, .b = a + map->part_count * rank * map->inputs, .columns = rank, .scale = adapter[LORA_SCALE],
                 .flags = adapter + LORA_FLAGS + map->first_flag};
}

// Whether a row before this one has its adapter. Most often it is near.
static bool seen(const int64_t *begins, size_t row) {
  for (size_t i = row; i-- > 0;) {
    if (begins[i] == begins[row]) return true;
  }
  return false;
}

bool blocks_of_adapters(Blocks *blocks, const Adapters *adapters, size_t rows, size_t most, bool wanted) {
  const LoraMap *map = &adapters->map;
  const float *factors = adapters->factors;
  const int64_t *begins = adapters->begins;
  size_t t_count = 0;
  for (size_t row = 0; row < rows; row++) t_count += map->part_count * rank_at(factors, begins[row]);
  if (!make(blocks, rows, t_count)) return false;
  size_t *list = blocks->rows;
  float *t = blocks->t;
  for (size_t first = 0; first < rows; first++) {
    if ((begins[first] < 0 && !wanted) || seen(begins, first)) continue;
    Block all = block_of(map, factors, begins[first]);
    all.rows = list;
    all.t = t;
    for (size_t row = first; row < rows; row++) {
      if (begins[row] == begins[first]) list[all.count++] = row;
    }
    const size_t t_width = map->part_count * all.columns;
    cut(blocks, &all, t_width, most);
    list += all.count;
    t += all.count * t_width;
  }
  return true;
}
