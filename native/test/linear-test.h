// What the tests of linear maps share. Each is a program (run.mjs):
//   int8-test [all | path]                                    prints OK for each path of this processor
//   int8-test time [path] [threads] [millions of weights] [input]  prints products per second
#ifndef FLYWHEEL_LINEAR_TEST_H
#define FLYWHEEL_LINEAR_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "linear/parts.h"
#include "random.h"
#include "rows/elementwise.h"
#include "threads/crew.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const LinearPrologue plain = {.kind = INPUT_PLAIN};

// path = NULL: as the library chooses.
static bool linear(const LinearPath *path, const LinearWeights *weights, const LinearPrologue *prologue, const float *x,
                   size_t rows, Result result, const Crew *crew) {
  return path != NULL ? linear_map_by(path, weights, prologue, x, rows, NULL, result, crew)
                      : linear_map(weights, prologue, x, rows, NULL, result.residual, result.y, crew);
}

// The largest magnitude of a row, negative if a number is not finite.
static float largest(const float *x, size_t inputs) {
  float amax = 0;
  for (size_t i = 0; i < inputs; i++) {
    if (!isfinite(x[i])) return -1;
    amax = fmaxf(amax, fabsf(x[i]));
  }
  return amax;
}

static int32_t integer_within(float whole, float most) {
  if (fabsf(whole) > most) printf("out of range: %g\n", whole), exit(1);
  return (int32_t)whole;
}

static int32_t exact(int64_t sum) {
  if (sum != (int32_t)sum) printf("a sum does not fit: %lld\n", (long long)sum), exit(1);
  return (int32_t)sum;
}

static bool same(const float *a, const float *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) {
      printf("  at %zu: %.9g instead of %.9g\n", i, a[i], b[i]);
      return false;
    }
  return true;
}

// Some rows are special: zeros, NaN, infinity, tiny, subnormal, huge, one outlier.
static void fill_row(float *x, size_t inputs, unsigned kind) {
  float factor = 1;
  if (kind == 2) factor = 1e-29f;
  if (kind == 3) factor = 1e-40f;
  if (kind == 4) factor = 1.5e38f;
  for (size_t i = 0; i < inputs; i++) x[i] = kind == 1 ? 0 : random_number() * factor;
  size_t somewhere = random_bits() % inputs;
  if (kind == 5) x[somewhere] = NAN;
  if (kind == 6) x[somewhere] = -INFINITY;
  if (kind == 7) x[somewhere] = 1000;
  if (kind == 8) x[somewhere] = 3.4028234e38f;
  if (kind == 9)  // halves: ties of both roundings
    for (size_t i = 0; i < inputs; i++) x[i] = i == 0 ? 127 : (float)(random_bits() % 509) / 2 - 127;
  if (kind == 10)  // ties of words
    for (size_t i = 0; i < inputs; i++) x[i] = i == 0 ? 32767 : (float)(random_bits() % 131068) / 2 - 32767;
  if (kind == 11)  // the largest sums
    for (size_t i = 0; i < inputs; i++) x[i] = 3;
}

// A map with a prologue and a residual against its parts, one after the other, bit by bit.
static bool check_fused(const LinearPath *path, const LinearWeights *weights, size_t rows, const Crew *crew) {
  size_t n = weights->inputs, count = rows * weights->outputs;
  float *x = malloc((4 * rows * n + n) * sizeof *x), *prepared = x + 2 * rows * n, *kept = prepared + rows * n;
  float *norm = kept + rows * n;
  float *residual = malloc(3 * count * sizeof *residual), *expected = residual + count, *y = expected + count;
  for (size_t i = 0; i < n; i++) norm[i] = random_number() * 3;
  for (size_t i = 0; i < count; i++) residual[i] = random_number() * 5;
  for (size_t r = 0; r < 2 * rows; r++) fill_row(x + r * n, n, random_bits() % 4 == 0 ? random_bits() % 12 : 0);
  bool ok = true;
  for (int kind = INPUT_PLAIN; kind <= INPUT_GATED_GELU && ok; kind++) {
    LinearPrologue prologue = {.kind = (LinearInput)kind, .norm_weight = norm, .epsilon = 1e-5f};
    for (size_t r = 0; r < rows; r++) {
      const float *gate = x + 2 * r * n;
      if (kind == INPUT_PLAIN) memcpy(prepared + r * n, x + r * n, n * sizeof *x);
      else if (kind == INPUT_RMS_NORM) rms_norm_row(x + r * n, norm, n, 1e-5f, prepared + r * n);
      else gated_row(gate, gate + n, n, kind == INPUT_GATED_SILU ? SILU : GELU_TANH, prepared + r * n);
    }
    ok = linear(path, weights, &plain, prepared, rows, (Result){NULL, expected}, crew);
    ok = ok && linear(path, weights, &prologue, x, rows, (Result){NULL, y}, crew) && same(y, expected, count);
    for (size_t i = 0; i < count; i++) expected[i] += residual[i];
    ok = ok && linear(path, weights, &prologue, x, rows, (Result){residual, y}, crew) && same(y, expected, count);
    if (kind != INPUT_PLAIN) prologue.kept = kept;
    memcpy(y, residual, count * sizeof *y);  // in place
    ok = ok && linear(path, weights, &prologue, x, rows, (Result){y, y}, crew) && same(y, expected, count);
    ok = ok && (kind == INPUT_PLAIN || same(kept, prepared, rows * n));
    if (!ok) printf("  fused, input %d\n", kind);
  }
  free(x), free(residual);
  return ok;
}

// --- cases ---

typedef struct {
  LinearWeights *weights;
  size_t rows;
  float *x, *expected;  // `expected` is the test's to fill
} Case;

static Case case_of(LinearWeights *weights, size_t rows, bool special) {
  const size_t inputs = weights->inputs;
  const Case c = {weights, rows, malloc(rows * inputs * sizeof(float)), malloc(rows * weights->outputs * sizeof(float))};
  for (size_t r = 0; r < rows; r++)
    fill_row(c.x + r * inputs, inputs, special && random_bits() % 2 ? random_bits() % 12 : 0);
  return c;
}

static void free_case(Case c) { linear_weights_free(c.weights), free(c.x), free(c.expected); }

// A kind of weights. make_case: random weights and rows, and what the path makes of them in plain C.
typedef struct {
  LinearType type;
  Case (*make_case)(const LinearPath *path, size_t inputs, size_t outputs, size_t rows, bool special, bool with_bias);
  const size_t *inputs;
  size_t inputs_count;
} LinearTest;

static bool check_case(const LinearPath *path, const Case *c, const Crew *crew) {
  const LinearWeights *weights = c->weights;
  const size_t count = c->rows * weights->outputs;
  float *y = malloc((count + 1) * sizeof *y);
  y[count] = 12345;
  bool ok = linear(path, weights, &plain, c->x, c->rows, (Result){NULL, y}, crew);
  ok = ok && same(y, c->expected, count) && y[count] == 12345 && check_fused(path, weights, c->rows, crew);
  if (!ok)
    printf("FAILED %s: %zu inputs, %zu outputs, %zu rows, %zu threads\n", path != NULL ? path->name : "chosen",
           weights->inputs, weights->outputs, c->rows, crew->threads);
  free(y);
  return ok;
}

static const size_t OUTPUTS[] = {1, 15, 16, 17, 512, 1000, 8192},
                    ROWS[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 33, 64, 100, 512};

// Cases of at most `most` products each; about `share` of 1000 of all sizes. path = NULL: as the library chooses.
static bool check_path(const LinearTest *test, const LinearPath *path, float most, unsigned share) {
  Crew crews[] = {crew_of(1, 200), crew_of(2, 200), crew_of(5, 200)};
  const LinearPath *expected = path != NULL ? path : linear_paths(test->type)[0];
  size_t cases = 0;
  bool ok = true;
  for (size_t i = 0; i < test->inputs_count && ok; i++)
    for (size_t o = 0; o < COUNT(OUTPUTS) && ok; o++)
      for (size_t r = 0; r < COUNT(ROWS) && ok; r++) {
        if ((float)test->inputs[i] * (float)OUTPUTS[o] * (float)ROWS[r] > most) continue;
        if (random_bits() % 1000 >= share) continue;
        Case c = test->make_case(expected, test->inputs[i], OUTPUTS[o], ROWS[r], cases % 2 == 0, random_bits() % 2);
        ok = check_case(path, &c, &crews[cases % COUNT(crews)]);
        free_case(c);
        cases++;
      }
  for (size_t i = 0; i < COUNT(crews); i++) crew_end(crews[i]);
  printf("%s %s: %zu cases\n", ok ? "OK" : "FAILED", path != NULL ? path->name : "chosen", cases);
  return ok;
}

// --- time ---

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Seconds of one call, the least of several runs. `copies` of weights take turns, as layers of a model do.
static double time_of(const LinearPath *path, Case *cases, size_t copies, const LinearPrologue *prologue,
                      const float *x, size_t rows, float *y, const Crew *crew) {
  double best = 1e9;
  size_t calls = 1;
  for (double start = now(); now() - start < 0.12;) {
    double begin = now();
    for (size_t i = 0; i < calls * copies; i++)
      linear(path, cases[i % copies].weights, prologue, x, rows, (Result){prologue->kind == INPUT_PLAIN ? NULL : y, y}, crew);
    double seconds = now() - begin;
    best = fmin(best, seconds / (double)(calls * copies));
    if (seconds < 0.01) calls *= 2;
  }
  return best;
}

static void print_times(const LinearTest *test, const LinearPath *path, size_t inputs, size_t outputs, const Crew *crew,
                        size_t memory, LinearInput kind) {
  static const size_t rows[] = {1, 2, 4, 8, 16, 32, 128, 512};
  float *x = malloc(1024 * inputs * sizeof *x), *y = calloc(512 * outputs, sizeof *y);
  for (size_t i = 0; i < 1024 * inputs; i++) x[i] = random_number();
  const LinearPrologue prologue = {.kind = kind, .norm_weight = x, .epsilon = 1e-5f};
  const LinearPath *any = linear_paths(test->type)[0];
  const size_t copies = memory / (inputs * outputs) + 1;
  Case *cases = malloc(copies * sizeof *cases);
  for (size_t i = 0; i < copies; i++) cases[i] = test->make_case(any, inputs, outputs, 1, false, false);
  printf("%5zu x %5zu %s %zu threads, %3zu copies:", inputs, outputs, path != NULL ? path->name : "chosen",
         crew->threads, copies);
  for (size_t i = 0; i < COUNT(rows); i++) {
    double seconds = time_of(path, cases, copies, &prologue, x, rows[i], y, crew);
    printf("  %zu: %.0f us %.0f", rows[i], seconds * 1e6, (double)(rows[i] * inputs * outputs) / seconds * 1e-9);
    fflush(stdout);
  }
  printf(" GMAC/s\n");
  for (size_t i = 0; i < copies; i++) free_case(cases[i]);
  free(cases), free(x), free(y);
}

// time [path | chosen] [threads] [millions of weights] [input: LinearInput]. Other inputs than plain come with a residual.
static void time_paths(const LinearTest *test, int count, char **arguments) {
  static const size_t sizes[][2] = {{512, 1536}, {512, 2816}, {1408, 512}, {1024, 5632}, {512, 8192}};
  const LinearPath *path = NULL;
  for (const LinearPath *const *paths = linear_paths(test->type); *paths != NULL; paths++)
    if (count > 0 && strcmp((*paths)->name, arguments[0]) == 0) path = *paths;
  size_t memory = count > 2 ? strtoul(arguments[2], NULL, 10) << 20 : 0;
  LinearInput kind = count > 3 ? (LinearInput)strtoul(arguments[3], NULL, 10) : INPUT_PLAIN;
  for (size_t threads = 1; threads <= 2; threads++) {
    if (count > 1) threads = strtoul(arguments[1], NULL, 10);
    Crew crew = crew_of(threads, 200);
    for (size_t i = 0; i < COUNT(sizes); i++) print_times(test, path, sizes[i][0], sizes[i][1], &crew, memory, kind);
    crew_end(crew);
    if (count > 1) break;
  }
}

// A program's arguments.
static bool linear_test(const LinearTest *test, int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "time") == 0) {
    time_paths(test, count - 2, arguments + 2);
    return true;
  }
  const char *only = count > 1 && strcmp(arguments[1], "all") != 0 ? arguments[1] : NULL;
  bool ok = true;
  for (const LinearPath *const *path = linear_paths(test->type); *path != NULL; path++)
    if (only == NULL || strcmp((*path)->name, only) == 0)
      ok = check_path(test, *path, 3e6f, 1000) && check_path(test, *path, 3e8f, 60) && ok;
  return only == NULL ? check_path(test, NULL, 3e7f, 100) && ok : ok;
}

#endif
