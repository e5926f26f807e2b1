// Int8 and int4 maps with adapters against the map and lora_add one after the other, bit by bit: every path, kind of input and
// residual, with any number of threads.
#include <stdio.h>

#include "adapter-set.h"
#include "linear/parts.h"
#include "need-vectors.h"

static float *random_floats(size_t count) {
  float *floats = malloc((count + 1) * sizeof *floats);
  for (size_t i = 0; i < count; i++) floats[i] = random_number();
  return floats;
}

static LinearWeights *random_weights(LinearType type, size_t inputs, size_t outputs) {
  uint8_t *values = malloc(inputs * outputs);
  float *scales = random_floats(inputs * outputs);
  for (size_t i = 0; i < inputs * outputs; i++) values[i] = (uint8_t)(random_bits() % 255 + 129);
  LinearWeights *weights = type == LINEAR_INT8 ? int8_weights_pack((int8_t *)values, scales, NULL, inputs, outputs)
                                               : int4_weights_pack(values, scales, NULL, inputs, outputs);
  free(values), free(scales);
  return weights;
}

typedef struct {
  const LinearWeights *weights;
  Adapters adapters;
  const float *x, *norm, *residual;  // x: enough for gated rows
  size_t rows;
} Case;

static bool same_bits(const LinearPath *path, const Case *c, LinearInput kind, const float *residual, const Crew *crew) {
  const size_t outputs = c->weights->outputs, count = c->rows * outputs;
  float *kept = malloc(c->rows * c->weights->inputs * sizeof *kept);
  float *expected = malloc(count * sizeof *expected), *y = malloc((count + 1) * sizeof *y);
  LinearPrologue prologue = {.kind = kind, .norm_weight = c->norm, .epsilon = 1e-5f};
  y[count] = 7;
  bool ok = linear_map_by(path, c->weights, &prologue, c->x, c->rows, &c->adapters, (Result){residual, y}, crew);
  if (kind != INPUT_PLAIN) prologue.kept = kept;
  ok = ok && linear_map_by(path, c->weights, &prologue, c->x, c->rows, NULL, (Result){NULL, expected}, crew);
  ok = ok && lora_add(&c->adapters, kind == INPUT_PLAIN ? c->x : kept, c->rows, residual, expected, crew);
  ok = ok && y[count] == 7 && memcmp(y, expected, count * sizeof *y) == 0;
  free(kept), free(expected), free(y);
  return ok;
}

// `adapters`: how many different ones there are among the rows; some rows have none.
static bool check(LinearType type, size_t rows, size_t inputs, const int64_t *part_outputs, size_t parts, size_t adapters,
                  const Crew *crew) {
  static const size_t ranks[ADAPTERS] = {16, 3, 33, 8, 1};
  AdapterSet set;
  adapters_make(&set, inputs, part_outputs, parts, ranks);
  LinearWeights *weights = random_weights(type, inputs, set.map.outputs);
  int64_t *begins = malloc(rows * sizeof *begins);
  for (size_t row = 0; row < rows; row++) {
    const size_t of = random_bits() % (adapters + 1);
    begins[row] = of == adapters ? -1 : set.begins[of];
  }
  float *x = random_floats(2 * rows * inputs), *norm = random_floats(inputs);
  float *residual = random_floats(rows * set.map.outputs);
  const Case c = {weights, {set.map, set.factors, begins}, x, norm, residual, rows};
  bool ok = true;
  for (const LinearPath *const *path = linear_paths(type); *path != NULL; path++) {
    for (int kind = INPUT_PLAIN; kind <= INPUT_GATED_GELU; kind++) {
      ok = ok && same_bits(*path, &c, (LinearInput)kind, NULL, crew) &&
           same_bits(*path, &c, (LinearInput)kind, residual, crew);
    }
    if (!ok) {
      printf("FAILED %s %s: %zu rows, %zu inputs, %zu outputs in %zu parts, %zu adapters, %zu threads\n", type == LINEAR_INT8 ? "int8" : "int4",
             (*path)->name, rows, inputs, set.map.outputs, parts, adapters, crew->threads);
      break;
    }
  }
  linear_weights_free(weights);
  free(set.factors), free(begins), free(x), free(norm), free(residual);
  return ok;
}

int main(void) {
  need_vectors();
  static const int64_t outputs[][PARTS_MOST] = {{512}, {75, 70, 1}, {512, 256, 256}, {1408, 1408}};
  static const size_t parts[] = {1, 3, 3, 2}, rows[] = {1, 3, 8, 32, 50, 300}, inputs[] = {37, 512};
  Crew crews[] = {crew_of(1, 200), crew_of(2, 200), crew_of(5, 200), crew_of(16, 200)};
  bool ok = true;
  size_t cases = 0;
  for (size_t o = 0; o < 4; o++) {
    for (size_t r = 0; r < 6; r++) {
      for (size_t i = 0; i < 2; i++) {
        for (size_t crew = 0; crew < 4 && ok; crew++, cases++) {
          const size_t adapters = cases % (ADAPTERS + 1);
          ok = check(LINEAR_INT8, rows[r], inputs[i], outputs[o], parts[o], adapters, &crews[crew]) &&
               check(LINEAR_INT4, rows[r], (inputs[i] + 31) / 32 * 32, outputs[o], parts[o], adapters, &crews[crew]);
        }
      }
    }
  }
  for (size_t i = 0; i < 4; i++) crew_end(crews[i]);
  printf("%s adapted: %zu cases\n", ok ? "OK" : "FAILED", cases);
  return ok ? 0 : 1;
}
