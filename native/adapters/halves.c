// The two halves of one adapter apart, for the trainer, with its factors as the trainer has them.
#include <stdlib.h>

#include "adapters/units.h"
#include "sizes.h"

enum { TASKS_PER_THREAD = 4 };  // at most, so that a late thread holds up little

typedef struct {
  Step step;
  size_t tasks, units;  // of x · A, or panels of all blocks
} Half;

static void narrow_task(void *data, size_t index) {
  const Half *half = data;
  const size_t end = (index + 1) * half->units / half->tasks;
  for (size_t unit = index * half->units / half->tasks; unit < end; unit++) narrow_unit(&half->step, unit);
}

static void widen_task(void *data, size_t index) {
  const Half *half = data;
  const size_t outputs = half->step.map.outputs, panels = divide_up(outputs, LORA_PANEL);
  const size_t end = (index + 1) * half->units / half->tasks;
  for (size_t unit = index * half->units / half->tasks; unit < end; unit++) {
    const size_t first = unit % panels * LORA_PANEL;
    widen_block(&half->step, &half->step.blocks.list[unit / panels], first, at_most(first + LORA_PANEL, outputs));
  }
}

static void share(Half *half, void (*task)(void *data, size_t index), size_t products, const Crew *crew) {
  const size_t most = at_most(crew->threads * TASKS_PER_THREAD, half->units);
  half->tasks = crew_tasks(crew, step_us(&half->step, products), most);
  if (half->units > 0) crew_do(crew, half->tasks, task, half);
}

bool lora_narrow(const float *x, size_t rows, size_t inputs, const float *a, size_t columns, float *t,
                 const Crew *crew) {
  float *turned = malloc((inputs * columns + 1) * sizeof *turned);
  const Block block = {.a = turned, .columns = columns, .scale = 1, .t = t};
  Half half = {.step = {.map = {.inputs = inputs, .part_count = 1}, .x = x}};
  if (turned == NULL || !blocks_of_one(&half.step.blocks, &block, rows)) {
    free(turned);
    return false;
  }
  for (size_t i = 0; i < inputs; i++) {
    for (size_t c = 0; c < columns; c++) turned[c * inputs + i] = a[i * columns + c];
  }
  half.units = narrow_units(&half.step);
  share(&half, narrow_task, inputs, crew);
  blocks_free(&half.step.blocks);
  free(turned);
  return true;
}

bool lora_widen(const float *t, size_t rows, size_t columns, const float *b, size_t outputs, float *y,
                const Crew *crew) {
  float *panels = malloc((columns * outputs + 1) * sizeof *panels);
  const int64_t part_outputs = (int64_t)outputs;
  const LoraMap map = {.outputs = outputs, .part_count = 1, .part_outputs = &part_outputs};
  const Block block = {.b = panels, .columns = columns, .t = (float *)t};
  Half half = {.step = {.map = map, .target = {.y = y, .width = outputs}}};
  if (panels == NULL || !blocks_of_one(&half.step.blocks, &block, rows)) {
    free(panels);
    return false;
  }
  for (size_t c = 0; c < columns; c++) {
    for (size_t o = 0; o < outputs; o++) {
      const size_t first = o / LORA_PANEL * LORA_PANEL, width = at_most(LORA_PANEL, outputs - first);
      panels[first * columns + c * width + (o - first)] = b[c * outputs + o];
    }
  }
  half.units = half.step.blocks.count * divide_up(outputs, LORA_PANEL);
  share(&half, widen_task, outputs, crew);
  blocks_free(&half.step.blocks);
  free(panels);
  return true;
}
