// What LoraAdd and Int8Linear read of a step's adapters.
#include "runtime/operations.h"

// Products of sizes up to this one fit into 64 bits.
#define LARGEST ((int64_t)1 << 40)
static const Range sizes = {0, LARGEST, "adapters: a size is out of range"};
enum { LARGEST_RANK = 1 << 20 };

OrtStatus *read_adapter_places(const OrtKernelInfo *info, LoraMap *map) {
  ORT_TRY(read_size(info, "header", sizes, &map->header));
  ORT_TRY(read_size(info, "place", sizes, &map->place));
  return read_size(info, "first_flag", sizes, &map->first_flag);
}

// Whether all of an adapter that this map reads lies in the factors.
static bool fits(const LoraMap *map, const Input *factors, int64_t begin) {
  const size_t floats = factors->elements;
  if (begin < 0) return true;
  if ((size_t)begin > floats || floats - (size_t)begin < map->header) return false;
  if (map->header < LORA_FLAGS + map->first_flag + map->part_count) return false;
  const float rank = ((const float *)factors->data)[begin + LORA_RANK];
  if (!(rank >= 1 && rank <= LARGEST_RANK) || rank != (float)(size_t)rank) return false;
  const size_t needed = map->place + map->part_count * map->inputs + map->outputs;
  return (size_t)rank * needed <= floats - (size_t)begin - map->header;
}

static const char *read_parts(const Input *parts, size_t outputs, LoraMap *map) {
  map->part_count = parts->elements;
  map->part_outputs = parts->data;
  map->outputs = 0;
  for (size_t i = 0; i < map->part_count; i++) {
    if (map->part_outputs[i] < 0 || map->part_outputs[i] > LARGEST) return "adapters: a part has no outputs";
    map->outputs += (size_t)map->part_outputs[i];
  }
  return map->outputs == outputs ? NULL : "adapters: the map has other outputs than the parts";
}

OrtStatus *read_adapters(const OrtKernelContext *context, AdapterInputs at, size_t rows, size_t outputs,
                         Adapters *adapters) {
  Input factors, begins, parts;
  ORT_TRY(read_input(context, at.factors, &factors));
  ORT_TRY(read_input(context, at.begins, &begins));
  ORT_TRY(read_input(context, at.parts, &parts));
  if (factors.data == NULL || begins.data == NULL || parts.data == NULL) {
    return ort_failure("adapters: factors, begins and parts come together");
  }
  const char *problem = read_parts(&parts, outputs, &adapters->map);
  if (problem != NULL) return ort_failure(problem);
  if (begins.elements != rows) return ort_failure("adapters: not every row has a place");
  adapters->factors = factors.data;
  adapters->begins = begins.data;
  for (size_t row = 0; row < rows; row++) {
    if (row > 0 && adapters->begins[row] == adapters->begins[row - 1]) continue;
    if (!fits(&adapters->map, &factors, adapters->begins[row])) {
      return ort_failure("adapters: a row has no adapter at its place");
    }
  }
  return NULL;
}
