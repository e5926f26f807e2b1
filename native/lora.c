// Adapters in a step: collects the rows of each adapter, and shares factors and rows among threads.
#include "lora.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lora-blocks.h"
#include "sizes.h"

enum {
  PRODUCTS_PER_US = 8000,  // of one thread, roughly
  TASKS_PER_THREAD = 4,    // at most, so that a late thread holds up little
  UNIT_COLUMNS = 8,        // of A
};

// A half of the work, in units: some columns of a part, or some of its outputs, for the rows of a block.
typedef struct Job Job;
typedef struct {
  size_t (*units)(const LoraMap *map, const Block *block);
  void (*compute)(const Job *job, const Block *block, size_t unit);
} Half;

struct Job {
  const LoraMap *map;
  const float *x;
  LoraTarget target;  // all outputs
  const Blocks *blocks;
  const Half *half;          // of `share`
  size_t units, wide_units;  // wide: those of the second half, if both are done
  size_t tasks;
  _Alignas(64) atomic_size_t begun;  // units of the first half
  _Alignas(64) atomic_size_t done;
};

static bool has_part(const Block *block, size_t part) {
  return block->columns > 0 && (block->flags == NULL || block->flags[part] != 0);
}

// --- x · A ---

static size_t narrow_units(const LoraMap *map, const Block *block) {
  return map->part_count * divide_up(block->columns, UNIT_COLUMNS);
}

static void narrow_unit(const Job *job, const Block *block, size_t unit) {
  const LoraMap *map = job->map;
  const size_t of_part = divide_up(block->columns, UNIT_COLUMNS), part = unit / of_part;
  if (!has_part(block, part)) return;
  const size_t first = unit % of_part * UNIT_COLUMNS, column = part * block->columns + first;
  lora_narrow_rows(job->x, map->inputs, block->rows, block->count, block->a + column * map->inputs,
                   at_most(UNIT_COLUMNS, block->columns - first), block->scale, block->t + column,
                   map->part_count * block->columns);
}

// --- t · B ---

static size_t widen_units(const LoraMap *map, const Block *block) {
  (void)block;
  size_t units = 0;
  for (size_t part = 0; part < map->part_count; part++) units += divide_up((size_t)map->part_outputs[part], LORA_PANEL);
  return units;
}

static void widen_unit(const Job *job, const Block *block, size_t unit) {
  const LoraMap *map = job->map;
  size_t part = 0, before = 0;  // outputs of earlier parts
  for (size_t of_part; unit >= (of_part = divide_up((size_t)map->part_outputs[part], LORA_PANEL)); part++) {
    unit -= of_part;
    before += (size_t)map->part_outputs[part];
  }
  const size_t columns = has_part(block, part) ? block->columns : 0;
  if (columns == 0 && job->target.adds && job->target.residual == NULL) return;
  const size_t outputs = (size_t)map->part_outputs[part], first = unit * LORA_PANEL;
  LoraTarget target = job->target;
  target.y += before + first;
  if (target.residual != NULL) target.residual += before + first;
  target.outputs = at_most(LORA_PANEL, outputs - first);
  const float *b = columns == 0 ? NULL : block->b + (before + first) * columns;
  lora_widen_rows(block->t + part * block->columns, map->part_count * block->columns, columns, b, block->rows,
                  block->count, &target);
}

// --- Sharing ---

static const Half narrow_half = {narrow_units, narrow_unit}, widen_half = {widen_units, widen_unit};

static size_t count_units(const Job *job, const Half *half) {
  size_t units = 0;
  for (size_t i = 0; i < job->blocks->count; i++) units += half->units(job->map, &job->blocks->list[i]);
  return units;
}

// Microseconds. `products`: of a row for each column.
static float cost(const Block *block, size_t products) {
  return (float)(block->count * (block->columns + 1) * products) / PRODUCTS_PER_US;
}

static void do_units(const Job *job, const Half *half, size_t from, size_t to) {
  for (const Block *block = job->blocks->list; to > 0; block++) {
    const size_t units = half->units(job->map, block);
    for (size_t unit = from; unit < at_most(units, to); unit++) half->compute(job, block, unit);
    from = from > units ? from - units : 0;
    to = to > units ? to - units : 0;
  }
}

static void do_half(void *data, size_t index) {
  const Job *job = data;
  do_units(job, job->half, index * job->units / job->tasks, (index + 1) * job->units / job->tasks);
}

static void share(Job *job, const Half *half, size_t products, const Crew *crew) {
  float us = 0;
  for (size_t i = 0; i < job->blocks->count; i++) us += cost(&job->blocks->list[i], products);
  job->half = half;
  job->units = count_units(job, half);
  job->tasks = crew_tasks(crew, us, at_most(crew->threads * TASKS_PER_THREAD, job->units));
  if (job->units > 0) crew_do(crew, job->tasks, do_half, job);
}

// Both halves in one go: threads do units of the first half until none is left, wait for those that others have begun,
// and go on with their share of the second.
static void do_both(void *data, size_t index) {
  Job *job = data;
  size_t unit;
  while ((unit = atomic_fetch_add_explicit(&job->begun, 1, memory_order_relaxed)) < job->units) {
    do_units(job, &narrow_half, unit, unit + 1);
    atomic_fetch_add_explicit(&job->done, 1, memory_order_release);
  }
  for (size_t turn = 0; atomic_load_explicit(&job->done, memory_order_acquire) < job->units; turn++)
    pause_briefly(turn);
  do_units(job, &widen_half, index * job->wide_units / job->tasks, (index + 1) * job->wide_units / job->tasks);
}

// Both halves for some blocks, without waiting in between.
static void do_blocks(void *data, size_t index) {
  const Job *job = data;
  const size_t count = job->blocks->count;
  for (size_t i = index * count / job->tasks; i < (index + 1) * count / job->tasks; i++) {
    const Block *block = &job->blocks->list[i];
    for (size_t unit = 0; unit < narrow_units(job->map, block); unit++) narrow_unit(job, block, unit);
    for (size_t unit = 0; unit < widen_units(job->map, block); unit++) widen_unit(job, block, unit);
  }
}

// Threads take whole blocks if there are enough of them, and parts of blocks otherwise.
static void share_both(Job *job, const Crew *crew) {
  const LoraMap *map = job->map;
  const size_t blocks = job->blocks->count;
  float us = 0;
  for (size_t i = 0; i < blocks; i++) us += cost(&job->blocks->list[i], map->part_count * map->inputs + map->outputs);
  if (blocks >= crew->threads) {
    job->tasks = crew_tasks(crew, us, at_most(crew->threads * TASKS_PER_THREAD, blocks));
    crew_do(crew, job->tasks, do_blocks, job);
    return;
  }
  job->units = count_units(job, &narrow_half);
  job->wide_units = count_units(job, &widen_half);
  job->tasks = crew_tasks(crew, us, at_most(crew->threads, job->wide_units));
  if (job->wide_units > 0) crew_do(crew, job->tasks, do_both, job);
}

// Most rows of a block, so that there are some blocks for every thread: whole tiles of lora-rows.h.
static size_t block_rows(size_t rows, size_t threads) {
  return threads == 1 ? BLOCK_ROWS : at_most(BLOCK_ROWS, 4 * divide_up(rows, 8 * threads));
}

bool lora_add(const LoraMap *map, const float *factors, const int64_t *begins, const float *x, size_t rows,
              const float *residual, float *y, const Crew *crew) {
  Blocks blocks;
  if (!blocks_of_adapters(&blocks, map, factors, begins, rows, block_rows(rows, crew->threads),
                          residual != NULL)) {
    return false;
  }
  Job job = {.map = map, .x = x, .blocks = &blocks,
             .target = {.y = y, .width = map->outputs, .adds = true, .residual = residual}};
  share_both(&job, crew);
  blocks_free(&blocks);
  return true;
}

bool lora_narrow(const float *x, size_t rows, size_t inputs, const float *a, size_t columns, float *t,
                 const Crew *crew) {
  float *turned = malloc((inputs * columns + 1) * sizeof *turned);
  Blocks blocks;
  const LoraMap map = {.inputs = inputs, .part_count = 1};
  const Block block = {.a = turned, .columns = columns, .scale = 1, .t = t};
  if (turned == NULL || !blocks_of_one(&blocks, &block, rows)) {
    free(turned);
    return false;
  }
  for (size_t i = 0; i < inputs; i++) {
    for (size_t c = 0; c < columns; c++) turned[c * inputs + i] = a[i * columns + c];
  }
  Job job = {.map = &map, .x = x, .blocks = &blocks};
  share(&job, &narrow_half, inputs, crew);
  blocks_free(&blocks);
  free(turned);
  return true;
}

bool lora_widen(const float *t, size_t rows, size_t columns, const float *b, size_t outputs, float *y,
                const Crew *crew) {
  float *panels = malloc((columns * outputs + 1) * sizeof *panels);
  Blocks blocks;
  const int64_t part_outputs = (int64_t)outputs;
  const LoraMap map = {.outputs = outputs, .part_count = 1, .part_outputs = &part_outputs};
  const Block block = {.b = panels, .columns = columns, .t = (float *)t};
  if (panels == NULL || !blocks_of_one(&blocks, &block, rows)) {
    free(panels);
    return false;
  }
  for (size_t c = 0; c < columns; c++) {
    for (size_t o = 0; o < outputs; o++) {
      const size_t first = o / LORA_PANEL * LORA_PANEL, width = at_most(LORA_PANEL, outputs - first);
      panels[first * columns + c * width + (o - first)] = b[c * outputs + o];
    }
  }
  Job job = {.map = &map, .blocks = &blocks, .target = {.y = y, .width = outputs}};
  share(&job, &widen_half, outputs, crew);
  blocks_free(&blocks);
  free(panels);
  return true;
}
