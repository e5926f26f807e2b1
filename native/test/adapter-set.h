// Adapters side by side in one memory, for tests.
#ifndef FLYWHEEL_ADAPTER_SET_H
#define FLYWHEEL_ADAPTER_SET_H

#include <stdlib.h>
#include <string.h>

#include "adapters/lora.h"
#include "random.h"

enum { HEADER = 16, ADAPTERS = 5, PARTS_MOST = 3, PLACE = 7, FIRST_FLAG = 4 };

typedef struct {
  LoraMap map;
  int64_t part_outputs[PARTS_MOST];
  size_t ranks[ADAPTERS], floats;
  int64_t begins[ADAPTERS];
  float *factors;
} AdapterSet;

static size_t adapter_floats(const LoraMap *map, size_t rank) {
  return map->header + rank * (map->place + map->part_count * map->inputs + map->outputs);
}

// All but the factors that are used is NaN. The last adapter leaves the last part alone.
static void adapters_make(AdapterSet *all, size_t inputs, const int64_t *part_outputs, size_t parts,
                          const size_t *ranks) {
  all->map = (LoraMap){.header = HEADER, .place = PLACE, .first_flag = FIRST_FLAG, .inputs = inputs,
                       .part_count = parts, .part_outputs = all->part_outputs};
  for (size_t i = 0; i < parts; i++) all->map.outputs += (size_t)(all->part_outputs[i] = part_outputs[i]);
  all->floats = 3;
  for (size_t i = 0; i < ADAPTERS; i++) {
    all->ranks[i] = ranks[i];
    all->begins[i] = (int64_t)all->floats;
    all->floats += adapter_floats(&all->map, ranks[i]) + 5;
  }
  all->factors = malloc(all->floats * sizeof(float));
  memset(all->factors, 0xff, all->floats * sizeof(float));
  for (size_t i = 0; i < ADAPTERS; i++) {
    float *adapter = all->factors + all->begins[i], *factors = adapter + HEADER + ranks[i] * PLACE;
    adapter[LORA_RANK] = (float)ranks[i];
    adapter[LORA_SCALE] = 0.3f + (float)i;
    for (size_t part = 0; part < parts; part++) {
      const bool there = i + 1 < ADAPTERS || part + 1 < parts;
      const size_t outputs = (size_t)part_outputs[part], count = ranks[i] * inputs;
      size_t before = parts * count;
      for (size_t p = 0; p < part; p++) before += ranks[i] * (size_t)part_outputs[p];
      adapter[LORA_FLAGS + FIRST_FLAG + part] = there ? 1 : 0;
      for (size_t j = 0; there && j < count; j++) factors[part * count + j] = random_number();
      for (size_t j = 0; there && j < ranks[i] * outputs; j++) factors[before + j] = random_number();
    }
  }
}

#endif
