// Checks the int8 linear map's paths against plain C, bit by bit, and times them. A program of its own (run.mjs):
//   int8-linear-test [all | path]                       prints OK for each path of this processor
//   int8-linear-test time [path] [threads] [MiB of weights] [input]   prints products per second
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "threads/crew.h"
#include "elementwise-checks.h"
#include "int8/parts.h"
#include "need-vectors.h"
#include "random.h"

static const Int8Prologue plain = {.kind = INPUT_PLAIN};

// path = NULL: as the library chooses.
static bool linear(const Int8Path *path, const Int8Weights *weights, const Int8Prologue *prologue, const float *x,
                   size_t rows, Result result, const Crew *crew) {
  return path != NULL ? int8_linear_by(path, weights, prologue, x, rows, NULL, result, crew)
                      : int8_linear(weights, prologue, x, rows, NULL, result.residual, result.y, crew);
}

// --- plain C ---

typedef struct {
  const int8_t *values;  // [inputs][outputs]
  const float *scales, *bias;
  size_t inputs, outputs;
} PlainWeights;

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

// S of int8/parts.h, by digits of one byte: [coarse, fine][inputs].
static float sum_of_bytes(const PlainWeights *w, const int32_t *digits, size_t output) {
  int64_t coarse = 0, fine = 0;
  for (size_t i = 0; i < w->inputs; i++) {
    int8_t weight = w->values[i * w->outputs + output];
    coarse += digits[i] * weight;
    fine += digits[w->inputs + i] * weight;
  }
  return fmaf((float)exact(fine), FINE_UNIT, (float)exact(coarse));
}

// S by words: [inputs].
static float sum_of_words(const PlainWeights *w, const int32_t *words, size_t output) {
  float total = 0;
  for (size_t first = 0; first < w->inputs; first += GROUP) {
    int64_t sums[2] = {0};
    for (size_t i = first; i < w->inputs && i < first + GROUP; i++)
      sums[i / 2 % 2] += words[i] * w->values[i * w->outputs + output];
    total += (float)exact(sums[0]) + (float)exact(sums[1]);
  }
  return total;
}

static void plain_row(const PlainWeights *w, bool words, const float *x, float *y) {
  float amax = largest(x, w->inputs), most = words ? LARGEST_WORD : 127, inverse = most / amax;
  float unit = amax < 0 ? NAN : amax < TINY ? 0 : amax / most;
  int32_t *digits = calloc(2 * w->inputs, sizeof *digits);
  for (size_t i = 0; i < w->inputs && amax >= TINY; i++) {
    float whole = rintf(x[i] * inverse);
    digits[i] = integer_within(whole, most);
    if (!words) digits[w->inputs + i] = integer_within(rintf(fmaf(x[i], inverse, -whole) * FINE_STEPS), 127);
  }
  for (size_t o = 0; o < w->outputs; o++)
    y[o] = fmaf((words ? sum_of_words : sum_of_bytes)(w, digits, o), w->scales[o] * unit, w->bias == NULL ? 0 : w->bias[o]);
  free(digits);
}

// --- cases ---

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

typedef struct {
  size_t inputs, outputs, rows;
  int8_t *values;
  float *scales, *bias, *x, *expected;
} Case;

static Case make_case(const Int8Path *path, size_t inputs, size_t outputs, size_t rows, bool special, bool with_bias) {
  Case c = {inputs, outputs, rows, malloc(inputs * outputs), malloc(outputs * 4), NULL, malloc(rows * inputs * 4),
            malloc(rows * outputs * 4)};
  for (size_t i = 0; i < inputs * outputs; i++) c.values[i] = (int8_t)(random_bits() % 255 - 127);
  // One output has the largest sums.
  for (size_t i = 0; i < inputs; i++) c.values[i * outputs] = -128;
  for (size_t i = 0; i < outputs; i++) c.scales[i] = 0.001f + 0.01f * fabsf(random_number());
  if (with_bias) {
    c.bias = malloc(outputs * 4);
    for (size_t i = 0; i < outputs; i++) c.bias[i] = random_number();
  }
  const bool words = strcmp((path != NULL ? path : int8_paths()[0])->name, "words") == 0;
  const PlainWeights weights = {c.values, c.scales, c.bias, inputs, outputs};
  for (size_t r = 0; r < rows; r++) {
    fill_row(c.x + r * inputs, inputs, special && random_bits() % 2 ? random_bits() % 12 : 0);
    plain_row(&weights, words, c.x + r * inputs, c.expected + r * outputs);
  }
  return c;
}

static void free_case(Case c) {
  free(c.values), free(c.scales), free(c.bias), free(c.x), free(c.expected);
}

// A map with a prologue and a residual against its parts, one after the other, bit by bit.
static bool check_fused(const Int8Path *path, const Int8Weights *weights, size_t rows, const Crew *crew) {
  size_t n = weights->inputs, count = rows * weights->outputs;
  float *x = malloc((4 * rows * n + n) * sizeof *x), *prepared = x + 2 * rows * n, *kept = prepared + rows * n;
  float *norm = kept + rows * n;
  float *residual = malloc(3 * count * sizeof *residual), *expected = residual + count, *y = expected + count;
  for (size_t i = 0; i < n; i++) norm[i] = random_number() * 3;
  for (size_t i = 0; i < count; i++) residual[i] = random_number() * 5;
  for (size_t r = 0; r < 2 * rows; r++) fill_row(x + r * n, n, random_bits() % 4 == 0 ? random_bits() % 12 : 0);
  bool ok = true;
  for (int kind = INPUT_PLAIN; kind <= INPUT_GATED_GELU && ok; kind++) {
    Int8Prologue prologue = {.kind = (Int8Input)kind, .norm_weight = norm, .epsilon = 1e-5f};
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

static bool check_case(const Int8Path *path, const Case *c, const Crew *crew) {
  Int8Weights *weights = int8_weights_pack(c->values, c->scales, c->bias, c->inputs, c->outputs);
  size_t count = c->rows * c->outputs;
  float *y = malloc((count + 1) * sizeof *y);
  y[count] = 12345;
  bool ok = linear(path, weights, &plain, c->x, c->rows, (Result){NULL, y}, crew);
  ok = ok && same(y, c->expected, count) && y[count] == 12345 && check_fused(path, weights, c->rows, crew);
  if (!ok)
    printf("FAILED %s: %zu inputs, %zu outputs, %zu rows, %zu threads\n", path != NULL ? path->name : "chosen",
           c->inputs, c->outputs, c->rows, crew->threads);
  free(y);
  int8_weights_free(weights);
  return ok;
}

static const size_t INPUTS[] = {1, 3, 31, 64, 100, 512, 1408, 4097}, OUTPUTS[] = {1, 15, 16, 17, 512, 1000, 8192},
                    ROWS[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 33, 64, 100, 512};
#define COUNT(array) (sizeof(array) / sizeof *(array))

// Cases of at most `most` products each; about `share` of 1000 of all sizes. path = NULL: as the library chooses.
static bool check_path(const Int8Path *path, float most, unsigned share) {
  Crew crews[] = {crew_of(1, 200), crew_of(2, 200), crew_of(5, 200)};
  size_t cases = 0;
  bool ok = true;
  for (size_t i = 0; i < COUNT(INPUTS) && ok; i++)
    for (size_t o = 0; o < COUNT(OUTPUTS) && ok; o++)
      for (size_t r = 0; r < COUNT(ROWS) && ok; r++) {
        if ((float)INPUTS[i] * (float)OUTPUTS[o] * (float)ROWS[r] > most) continue;
        if (random_bits() % 1000 >= share) continue;
        Case c = make_case(path, INPUTS[i], OUTPUTS[o], ROWS[r], cases % 2 == 0, random_bits() % 2);
        ok = check_case(path, &c, &crews[cases % COUNT(crews)]);
        free_case(c);
        cases++;
      }
  for (size_t i = 0; i < COUNT(crews); i++) crew_end(crews[i]);
  printf("%s %s: %zu cases\n", ok ? "OK" : "FAILED", path != NULL ? path->name : "chosen", cases);
  return ok;
}

// Largest error of a row against the exact product of the unrounded row: half a fine digit for every input.
static bool check_error(void) {
  bool ok = true;
  Crew crew = crew_of(1, 200);
  double worst = 0;
  for (int turn = 0; turn < 20 && ok; turn++) {
    Case c = make_case(NULL, 512, 64, 8, false, false);
    Int8Weights *weights = int8_weights_pack(c.values, c.scales, NULL, 512, 64);
    float y[8 * 64];
    int8_linear(weights, &plain, c.x, 8, NULL, NULL, y, &crew);
    for (size_t r = 0; r < 8; r++)
      for (size_t o = 0; o < 64; o++) {
        double sum = 0, size = 0, amax = 0;
        for (size_t i = 0; i < 512; i++) {
          double x = c.x[r * 512 + i], w = c.values[i * 64 + o];
          sum += x * w, size += fabs(w), amax = fmax(amax, fabs(x));
        }
        double error = fabs(y[r * 64 + o] - sum * c.scales[o]);
        double bound = size * c.scales[o] * amax / 127 * (0.5 / 254 + 0x1p-17) + fabs(sum * c.scales[o]) * 0x1p-21;
        worst = fmax(worst, error / bound);
        ok = ok && error <= bound;
      }
    int8_weights_free(weights);
    free_case(c);
  }
  crew_end(crew);
  printf("%s error: at most %.3f of the bound\n", ok ? "OK" : "FAILED", worst);
  return ok;
}

// --- time ---

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Seconds of one call, the least of several runs. `copies` of the weights take turns, as layers of a model do.
static double time_of(const Int8Path *path, Int8Weights **weights, size_t copies, const Int8Prologue *prologue,
                      const float *x, size_t rows, float *y, const Crew *crew) {
  double best = 1e9;
  size_t calls = 1;
  for (double start = now(); now() - start < 0.12;) {
    double begin = now();
    for (size_t i = 0; i < calls * copies; i++)
      linear(path, weights[i % copies], prologue, x, rows, (Result){prologue->kind == INPUT_PLAIN ? NULL : y, y}, crew);
    double seconds = now() - begin;
    best = fmin(best, seconds / (double)(calls * copies));
    if (seconds < 0.01) calls *= 2;
  }
  return best;
}

static void print_times(const Int8Path *path, size_t inputs, size_t outputs, const Crew *crew, size_t memory,
                        Int8Input kind) {
  static const size_t rows[] = {1, 2, 4, 8, 16, 32, 128, 512};
  Case c = make_case(path, inputs, outputs, 1, false, false);
  float *x = malloc(1024 * inputs * sizeof *x), *y = calloc(512 * outputs, sizeof *y);
  for (size_t i = 0; i < 1024 * inputs; i++) x[i] = random_number();
  const Int8Prologue prologue = {.kind = kind, .norm_weight = x, .epsilon = 1e-5f};
  size_t copies = memory / (inputs * outputs) + 1;
  Int8Weights **weights = malloc(copies * sizeof *weights);
  for (size_t i = 0; i < copies; i++) weights[i] = int8_weights_pack(c.values, c.scales, NULL, inputs, outputs);
  printf("%5zu x %5zu %s %zu threads, %3zu copies:", inputs, outputs, path != NULL ? path->name : "chosen",
         crew->threads, copies);
  for (size_t i = 0; i < COUNT(rows); i++) {
    double seconds = time_of(path, weights, copies, &prologue, x, rows[i], y, crew);
    printf("  %zu: %.0f us %.0f", rows[i], seconds * 1e6, (double)(rows[i] * inputs * outputs) / seconds * 1e-9);
    fflush(stdout);
  }
  printf(" GMAC/s\n");
  for (size_t i = 0; i < copies; i++) int8_weights_free(weights[i]);
  free(weights), free(x), free(y);
  free_case(c);
}

// time [path | chosen] [threads] [MiB of weights] [input: Int8Input]. Other inputs than plain come with a residual.
static void time_paths(int count, char **arguments) {
  static const size_t sizes[][2] = {{512, 1536}, {512, 2816}, {1408, 512}, {1024, 5632}, {512, 8192}};
  const Int8Path *path = NULL;
  for (const Int8Path *const *paths = int8_paths(); *paths != NULL; paths++)
    if (count > 0 && strcmp((*paths)->name, arguments[0]) == 0) path = *paths;
  size_t memory = count > 2 ? strtoul(arguments[2], NULL, 10) << 20 : 0;
  Int8Input kind = count > 3 ? (Int8Input)strtoul(arguments[3], NULL, 10) : INPUT_PLAIN;
  for (size_t threads = 1; threads <= 2; threads++) {
    if (count > 1) threads = strtoul(arguments[1], NULL, 10);
    Crew crew = crew_of(threads, 200);
    for (size_t i = 0; i < COUNT(sizes); i++) print_times(path, sizes[i][0], sizes[i][1], &crew, memory, kind);
    crew_end(crew);
    if (count > 1) break;
  }
}

int main(int count, char **arguments) {
  need_vectors();
  if (count > 1 && strcmp(arguments[1], "time") == 0) {
    time_paths(count - 2, arguments + 2);
    return 0;
  }
  const char *only = count > 1 && strcmp(arguments[1], "all") != 0 ? arguments[1] : NULL;
  bool ok = check_elementwise() && check_error();
  for (const Int8Path *const *path = int8_paths(); *path != NULL; path++)
    if (only == NULL || strcmp((*path)->name, only) == 0)
      ok = check_path(*path, 3e6f, 1000) && check_path(*path, 3e8f, 60) && ok;
  if (only == NULL) ok = check_path(NULL, 3e7f, 100) && ok;
  return ok ? 0 : 1;
}
