#include "adapters/units.h"

#include "sizes.h"

enum {
  PRODUCTS_PER_US = 8000,  // of one thread, roughly
  UNIT_COLUMNS = 8,        // of A
};

float step_us(const Step *step, size_t products) {
  size_t all = 0;
  for (size_t i = 0; i < step->blocks.count; i++) {
    const Block *block = &step->blocks.list[i];
    all += block->count * (block->columns + 1) * products;
  }
  return (float)all / PRODUCTS_PER_US;
}

static bool has_part(const Block *block, size_t part) {
  return block->columns > 0 && (block->flags == NULL || block->flags[part] != 0);
}

// --- x · A ---

static size_t units_of(const Step *step, const Block *block) {
  return step->map.part_count * divide_up(block->columns, UNIT_COLUMNS);
}

size_t narrow_units(const Step *step) {
  size_t units = 0;
  for (size_t i = 0; i < step->blocks.count; i++) units += units_of(step, &step->blocks.list[i]);
  return units;
}

static void narrow_columns(const Step *step, const Block *block, size_t unit) {
  const LoraMap *map = &step->map;
  const size_t of_part = divide_up(block->columns, UNIT_COLUMNS), part = unit / of_part;
  if (!has_part(block, part)) return;
  const size_t first = unit % of_part * UNIT_COLUMNS, column = part * block->columns + first;
  lora_narrow_rows(step->x, map->inputs, block->rows, block->count, block->a + column * map->inputs,
                   at_most(UNIT_COLUMNS, block->columns - first), block->scale, block->t + column,
                   map->part_count * block->columns);
}

void narrow_unit(const Step *step, size_t unit) {
  const Block *block = step->blocks.list;
  for (size_t units; unit >= (units = units_of(step, block)); block++) unit -= units;
  narrow_columns(step, block, unit);
}

void narrow_block(const Step *step, const Block *block) {
  for (size_t unit = 0; unit < units_of(step, block); unit++) narrow_columns(step, block, unit);
}

// --- t · B ---

// Outputs first .. end - 1 of a part; `before`: outputs of the parts before it.
static void widen_part(const Step *step, const Block *block, size_t part, size_t before, size_t first, size_t end) {
  const size_t columns = has_part(block, part) ? block->columns : 0, outputs = (size_t)step->map.part_outputs[part];
  if (columns == 0 && step->target.adds && step->target.residual == NULL) return;
  for (size_t from = first, to; from < end; from = to) {
    const size_t panel = from / LORA_PANEL * LORA_PANEL, width = at_most(LORA_PANEL, outputs - panel);
    to = at_most(panel + width, end);
    LoraTarget target = step->target;
    target.y += before + from;
    if (target.residual != NULL) target.residual += before + from;
    target.outputs = to - from;
    const float *b = columns == 0 ? NULL : block->b + (before + panel) * columns + (from - panel);
    lora_widen_rows(block->t + part * block->columns, step->map.part_count * block->columns, columns, b, width,
                    block->rows, block->count, &target);
  }
}

void widen_block(const Step *step, const Block *block, size_t first, size_t end) {
  const LoraMap *map = &step->map;
  for (size_t part = 0, before = 0; part < map->part_count && before < end; part++) {
    const size_t outputs = (size_t)map->part_outputs[part];
    if (first < before + outputs) {
      widen_part(step, block, part, before, first > before ? first - before : 0, at_most(outputs, end - before));
    }
    before += outputs;
  }
}
