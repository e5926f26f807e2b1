// Adapters against a slow reference in double precision, and their bits whoever else is in the batch. With the argument
// `time`: how long one map takes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapter-set.h"
#include "threads/crew.h"

static bool failed;

static void check(bool good, const char *what) {
  if (good) return;
  failed = true;
  printf("  FAIL %s\n", what);
}

static float *random_floats(size_t count) {
  float *floats = malloc((count + 1) * sizeof(float));
  for (size_t i = 0; i < count; i++) floats[i] = random_number();
  return floats;
}

// --- Where an adapter's numbers lie ---

static const float *a_of(const AdapterSet *all, size_t adapter, size_t part) {
  return all->factors + all->begins[adapter] + HEADER +
         all->ranks[adapter] * (PLACE + part * all->map.inputs);
}
static const float *b_of(const AdapterSet *all, size_t adapter, size_t part) {
  const float *b = a_of(all, adapter, all->map.part_count);
  for (size_t p = 0; p < part; p++) b += all->ranks[adapter] * (size_t)all->part_outputs[p];
  return b;
}

static size_t b_place(size_t r, size_t output, size_t rank, size_t outputs) {
  const size_t first = output - output % LORA_PANEL, width = outputs - first < LORA_PANEL ? outputs - first : LORA_PANEL;
  return first * rank + r * width + output - first;
}

// --- One row, slowly ---

static double reference(const AdapterSet *all, size_t adapter, size_t part, const float *x, size_t output) {
  const size_t rank = all->ranks[adapter], inputs = all->map.inputs, outputs = (size_t)all->part_outputs[part];
  const float *a = a_of(all, adapter, part), *b = b_of(all, adapter, part);
  const double scale = (double)all->factors[all->begins[adapter] + LORA_SCALE];
  double sum = 0;
  for (size_t r = 0; r < rank; r++) {
    double t = 0;
    for (size_t i = 0; i < inputs; i++) t += (double)x[i] * (double)a[r * inputs + i];
    sum += t * scale * (double)b[b_place(r, output, rank, outputs)];
  }
  return sum;
}

static bool has_part(const AdapterSet *all, size_t adapter, size_t part) {
  return all->factors[all->begins[adapter] + LORA_FLAGS + FIRST_FLAG + (int64_t)part] != 0;
}

// Row by row, adapter -1 = none. `base`: y before, `residual`: may be NULL.
static void check_values(const AdapterSet *all, const int *of_row, const float *x, size_t rows, const float *base,
                         const float *residual, const float *y) {
  const LoraMap *map = &all->map;
  double worst = 0;
  bool untouched = true;
  for (size_t row = 0; row < rows; row++) {
    size_t at = row * map->outputs;
    for (size_t part = 0; part < map->part_count; part++) {
      for (size_t o = 0; o < (size_t)all->part_outputs[part]; o++, at++) {
        const float more = residual == NULL ? 0 : residual[at];
        if (of_row[row] < 0 || !has_part(all, (size_t)of_row[row], part)) {
          untouched &= y[at] == more + base[at];
          continue;
        }
        const double sum = reference(all, (size_t)of_row[row], part, x + row * map->inputs, o);
        const double error = fabs((double)base[at] + sum + (double)more - (double)y[at]);
        if (!(error <= worst)) worst = error;
      }
    }
  }
  check(worst < 3e-5 * sqrt((double)map->inputs), "values");
  check(untouched, "rows and parts without an adapter");
}

// --- The same row otherwise ---

static float *added(const AdapterSet *all, const int *of_row, const float *x, size_t rows, const float *base,
                    const float *residual, Crew crew) {
  int64_t *begins = malloc((rows + 1) * sizeof *begins);
  for (size_t row = 0; row < rows; row++) begins[row] = of_row[row] < 0 ? -1 : all->begins[of_row[row]];
  const size_t floats = rows * all->map.outputs;
  float *y = malloc((floats + 1) * sizeof(float));
  memcpy(y, base, floats * sizeof(float));
  y[floats] = 7;
  const Adapters adapters = {all->map, all->factors, begins};
  check(lora_add(&adapters, x, rows, residual, y, &crew), "memory");
  check(y[floats] == 7, "writes only y");
  free(begins);
  return y;
}

static void check_alone(const AdapterSet *all, const int *of_row, const float *x, size_t rows, const float *base,
                        const float *residual, const float *y, Crew crew) {
  const LoraMap *map = &all->map;
  for (size_t row = 0; row < rows; row++) {
    const size_t at = row * map->outputs;
    float *alone = added(all, of_row + row, x + row * map->inputs, 1, base + at,
                         residual == NULL ? NULL : residual + at, crew);
    check(!memcmp(alone, y + at, map->outputs * sizeof(float)), "a row alone");
    free(alone);
  }
}

// The two halves, as the trainer computes them, for the first part and rows of adapter 0.
static void check_halves(const AdapterSet *all, const float *x, size_t rows, Crew crew) {
  const LoraMap *map = &all->map;
  const size_t rank = all->ranks[0], outputs = (size_t)all->part_outputs[0];
  float *a = malloc(map->inputs * rank * sizeof(float)), *t = malloc(rows * rank * sizeof(float));
  float *b = malloc(rank * outputs * sizeof(float));
  float *y = malloc(rows * outputs * sizeof(float)), *zeros = calloc(rows * map->outputs + 1, sizeof(float));
  for (size_t i = 0; i < map->inputs * rank; i++) a[i] = a_of(all, 0, 0)[i % rank * map->inputs + i / rank];
  check(lora_narrow(x, rows, map->inputs, a, rank, t, &crew), "memory");
  for (size_t i = 0; i < rows * rank; i++) t[i] *= all->factors[all->begins[0] + LORA_SCALE];
  for (size_t i = 0; i < rank * outputs; i++) b[i] = b_of(all, 0, 0)[b_place(i / outputs, i % outputs, rank, outputs)];
  check(lora_widen(t, rows, rank, b, outputs, y, &crew), "memory");
  int *of_row = calloc(rows + 1, sizeof *of_row);
  float *whole = added(all, of_row, x, rows, zeros, NULL, crew);
  for (size_t row = 0; row < rows; row++) {
    check(!memcmp(y + row * outputs, whole + row * map->outputs, outputs * sizeof(float)), "the halves");
  }
  free(a), free(b), free(t), free(y), free(zeros), free(of_row), free(whole);
}

// The same adapters at other places.
static void check_places(AdapterSet *all, const int *of_row, const float *x, size_t rows, const float *base,
                         const float *y, Crew crew) {
  float *moved = malloc(2 * all->floats * sizeof(float)), *factors = all->factors;
  int64_t begins[ADAPTERS], begin = 0;
  memcpy(begins, all->begins, sizeof begins);
  for (size_t i = ADAPTERS; i-- > 0;) {
    const size_t floats = adapter_floats(&all->map, all->ranks[i]);
    memcpy(moved + begin, factors + begins[i], floats * sizeof(float));
    all->begins[i] = begin;
    begin += (int64_t)floats + 1;
  }
  all->factors = moved;
  float *other = added(all, of_row, x, rows, base, NULL, crew);
  check(!memcmp(other, y, rows * all->map.outputs * sizeof(float)), "adapters elsewhere");
  all->factors = factors;
  memcpy(all->begins, begins, sizeof begins);
  free(moved), free(other);
}

static void test(size_t rows, size_t inputs, const int64_t *part_outputs, size_t parts, const size_t *ranks,
                 const Crew *crews, size_t crew_count) {
  AdapterSet all;
  adapters_make(&all, inputs, part_outputs, parts, ranks);
  const size_t floats = rows * all.map.outputs;
  float *x = random_floats(rows * inputs), *base = random_floats(floats), *residual = random_floats(floats);
  int *of_row = malloc(rows * sizeof *of_row);
  for (size_t row = 0; row < rows; row++) of_row[row] = (int)(random_bits() % (ADAPTERS + 1)) - 1;
  for (size_t with = 0; with < 2; with++) {
    const float *more = with ? residual : NULL;
    float *y = added(&all, of_row, x, rows, base, more, crews[0]);
    check_values(&all, of_row, x, rows, base, more, y);
    check_alone(&all, of_row, x, rows, base, more, y, crews[0]);
    for (size_t i = 1; i < crew_count; i++) {
      float *other = added(&all, of_row, x, rows, base, more, crews[i]);
      check(!memcmp(other, y, floats * sizeof(float)), "threads");
      free(other);
    }
    if (!with) check_places(&all, of_row, x, rows, base, y, crews[0]);
    free(y);
  }
  for (size_t i = 0; i < crew_count; i++) check_halves(&all, x, rows, crews[i]);
  free(all.factors), free(x), free(base), free(residual), free(of_row);
}

// --- Time ---

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// Several maps in turn, as the layers of a model, so that factors come from memory.
static void time_map(size_t rows, size_t adapters, size_t inputs, size_t outputs, size_t parts, Crew crew) {
  enum { LAYERS = 12, RANK = 16 };
  const int64_t part_outputs[PARTS_MOST] = {(int64_t)outputs, (int64_t)outputs, (int64_t)outputs};
  LoraMap map = {.header = HEADER, .inputs = inputs, .outputs = parts * outputs, .part_count = parts,
                 .part_outputs = part_outputs};
  const size_t layer = parts * (inputs + outputs), floats = HEADER + RANK * LAYERS * layer;
  float *factors = random_floats(adapters * floats), *x = random_floats(rows * inputs);
  float *y = random_floats(rows * map.outputs);
  int64_t *begins = malloc(rows * sizeof *begins);
  for (size_t i = 0; i < adapters; i++) {
    factors[i * floats + LORA_RANK] = RANK;
    factors[i * floats + LORA_SCALE] = 1e-3f;
    for (size_t part = 0; part < parts; part++) factors[i * floats + LORA_FLAGS + part] = 1;
  }
  for (size_t row = 0; row < rows; row++) begins[row] = (int64_t)(row % adapters * floats);
  double best = 1e30;
  for (int turn = 0; turn < 12; turn++) {
    const double began = now();
    for (map.place = 0; map.place < LAYERS * layer; map.place += layer) {
      const Adapters here = {map, factors, begins};
      lora_add(&here, x, rows, NULL, y, &crew);
    }
    const double took = (now() - began) / LAYERS;
    if (took < best) best = took;
  }
  const double products = (double)(rows * RANK * layer);
  printf("  %3zu rows, %zu adapters, %4zu -> %zu x %4zu, %zu threads: %7.1f us, %5.1f products per ns\n",
         rows, adapters, inputs, parts, outputs, crew.threads, best, products / best / 1000);
  free(factors), free(x), free(y), free(begins);
}

int main(int count, char **arguments) {
  const bool timed = count > 1 && strcmp(arguments[1], "time") == 0;
  Crew crews[] = {crew_of(1, 200), crew_of(timed ? 1 : 5, 200), crew_of(2, 200)};
  if (timed) {
    for (size_t i = 0; i < 3; i += 2) {
      time_map(32, 8, 512, 340, 3, crews[i]);
      time_map(32, 8, 512, 512, 1, crews[i]);
      time_map(32, 8, 512, 1408, 2, crews[i]);
      time_map(32, 8, 1408, 512, 1, crews[i]);
      time_map(32, 1, 512, 1408, 2, crews[i]);
      time_map(1, 1, 512, 1408, 2, crews[i]);
      time_map(512, 1, 512, 1408, 2, crews[i]);
    }
  } else {
    const int64_t outputs[][PARTS_MOST] = {{75, 0, 0}, {64, 16, 5}, {512, 256, 256}, {1, 300, 0}};
    const size_t ranks[][ADAPTERS] = {{1, 2, 3, 4, 5}, {16, 16, 16, 16, 16}, {33, 1, 64, 8, 12}};
    const size_t rows[] = {1, 3, 8, 70, 300}, inputs[] = {1, 15, 101, 512};
    for (size_t i = 0; i < 60; i++) {
      const size_t parts = outputs[i % 4][1] == 0 ? 1 : outputs[i % 4][2] == 0 ? 2 : 3;
      test(rows[i % 5], inputs[i / 5 % 4], outputs[i % 4], parts, ranks[i % 3], crews, 3);
    }
    puts(failed ? "  failed" : "  passed");
  }
  for (size_t i = 0; i < 3; i++) crew_end(crews[i]);
  return failed;
}
