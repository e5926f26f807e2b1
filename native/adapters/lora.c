// Adapters in a step: threads do x · A together, then each some outputs of t · B.
#include "adapters/lora.h"

#include <stdlib.h>

#include "adapters/units.h"
#include "threads/pieces.h"
#include "sizes.h"

enum { TASKS_PER_THREAD = 4 };  // at most, so that a late thread holds up little

struct LoraWork {
  Step step;
  bool whole;  // threads take whole blocks; otherwise some outputs of all blocks
  size_t units, tasks;
  Pieces narrowed;  // units
};

// Most rows of a block, so that there are some blocks for every thread: whole tiles of adapters/lora-lanes.c.
static size_t block_rows(size_t rows, size_t threads) {
  return threads == 1 ? BLOCK_ROWS : at_most(BLOCK_ROWS, 4 * divide_up(rows, 8 * threads));
}

LoraWork *lora_begin(const Adapters *adapters, const float *x, size_t rows, const float *residual, float *y,
                     size_t threads) {
  LoraWork *work = aligned_alloc(_Alignof(LoraWork), sizeof *work);
  if (work == NULL) return NULL;
  const LoraTarget target = {.y = y, .width = adapters->map.outputs, .adds = true, .residual = residual};
  work->step = (Step){.map = adapters->map, .x = x, .target = target};
  if (!blocks_of_adapters(&work->step.blocks, adapters, rows, block_rows(rows, threads), residual != NULL)) {
    free(work);
    return NULL;
  }
  work->whole = work->step.blocks.count >= threads;
  work->units = narrow_units(&work->step);
  pieces_init(&work->narrowed);
  return work;
}

void lora_end(LoraWork *work) {
  blocks_free(&work->step.blocks);
  free(work);
}

void lora_narrow_together(LoraWork *work) {
  for (size_t unit; piece_begin(&work->narrowed, work->units, &unit); piece_end(&work->narrowed)) {
    narrow_unit(&work->step, unit);
  }
}

void lora_widen_outputs(const LoraWork *work, size_t first, size_t end) {
  const Blocks *blocks = &work->step.blocks;
  pieces_wait(&work->narrowed, work->units);
  for (size_t i = 0; i < blocks->count; i++) widen_block(&work->step, &blocks->list[i], first, end);
}

// All of some blocks, without waiting in between.
static void do_blocks(void *data, size_t index) {
  const LoraWork *work = data;
  const Blocks *blocks = &work->step.blocks;
  for (size_t i = index * blocks->count / work->tasks; i < (index + 1) * blocks->count / work->tasks; i++) {
    narrow_block(&work->step, &blocks->list[i]);
    widen_block(&work->step, &blocks->list[i], 0, work->step.map.outputs);
  }
}

static void do_outputs(void *data, size_t index) {
  LoraWork *work = data;
  const size_t outputs = work->step.map.outputs, groups = divide_up(outputs, 16);
  lora_narrow_together(work);
  lora_widen_outputs(work, index * groups / work->tasks * 16,
                     at_most((index + 1) * groups / work->tasks * 16, outputs));
}

bool lora_by_outputs(const LoraWork *work) { return !work->whole; }

void lora_run(LoraWork *work, const Crew *crew) {
  const LoraMap *map = &work->step.map;
  const size_t blocks = work->step.blocks.count;
  const float us = step_us(&work->step, map->part_count * map->inputs + map->outputs);
  if (blocks == 0 || map->outputs == 0) return;
  work->tasks = crew_tasks(crew, us, work->whole ? at_most(crew->threads * TASKS_PER_THREAD, blocks)
                                                 : at_most(crew->threads, divide_up(map->outputs, 16)));
  crew_do(crew, work->tasks, work->whole ? do_blocks : do_outputs, work);
}

bool lora_add(const Adapters *adapters, const float *x, size_t rows, const float *residual, float *y,
              const Crew *crew) {
  LoraWork *work = lora_begin(adapters, x, rows, residual, y, crew->threads);
  if (work == NULL) return false;
  lora_run(work, crew);
  lora_end(work);
  return true;
}
