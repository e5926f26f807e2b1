// Checks the int8 linear map's paths against plain C, bit by bit, and times them (linear-test.h).
#include "elementwise-checks.h"
#include "int8/int8.h"
#include "linear-test.h"
#include "need-vectors.h"

typedef struct {
  const int8_t *values;  // [inputs][outputs]
  const float *scales, *bias;
  size_t inputs, outputs;
} PlainWeights;

// S of int8/int8.h, by digits of one byte: [coarse, fine][inputs].
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

static Case make_case(const LinearPath *path, size_t inputs, size_t outputs, size_t rows, bool special, bool with_bias) {
  int8_t *values = malloc(inputs * outputs);
  float *scales = malloc(outputs * sizeof *scales), *bias = with_bias ? malloc(outputs * sizeof *bias) : NULL;
  for (size_t i = 0; i < inputs * outputs; i++) values[i] = (int8_t)(random_bits() % 255 - 127);
  // One output has the largest sums.
  for (size_t i = 0; i < inputs; i++) values[i * outputs] = -128;
  for (size_t i = 0; i < outputs; i++) scales[i] = 0.001f + 0.01f * fabsf(random_number());
  for (size_t i = 0; with_bias && i < outputs; i++) bias[i] = random_number();
  const bool words = strcmp(path->name, "words") == 0;
  const PlainWeights plain_weights = {values, scales, bias, inputs, outputs};
  const Case c = case_of(int8_weights_pack(values, scales, bias, inputs, outputs), rows, special);
  for (size_t r = 0; r < rows; r++) plain_row(&plain_weights, words, c.x + r * inputs, c.expected + r * outputs);
  free(values), free(scales), free(bias);
  return c;
}

// Largest error of a row against the exact product of the unrounded row: half a fine digit for every input.
static bool check_error(void) {
  enum { ROWS = 8, OUTPUTS = 64, INPUTS = 512 };
  static int8_t values[INPUTS * OUTPUTS];
  static float scales[OUTPUTS], x[ROWS * INPUTS], y[ROWS * OUTPUTS];
  bool ok = true;
  Crew crew = crew_of(1, 200);
  double worst = 0;
  for (int turn = 0; turn < 20 && ok; turn++) {
    for (size_t i = 0; i < INPUTS * OUTPUTS; i++) values[i] = (int8_t)(random_bits() % 255 - 127);
    for (size_t i = 0; i < OUTPUTS; i++) scales[i] = 0.001f + 0.01f * fabsf(random_number());
    for (size_t r = 0; r < ROWS; r++) fill_row(x + r * INPUTS, INPUTS, 0);
    LinearWeights *weights = int8_weights_pack(values, scales, NULL, INPUTS, OUTPUTS);
    linear_map(weights, &plain, x, ROWS, NULL, NULL, y, &crew);
    for (size_t r = 0; r < ROWS; r++)
      for (size_t o = 0; o < OUTPUTS; o++) {
        double sum = 0, size = 0, amax = 0;
        for (size_t i = 0; i < INPUTS; i++) {
          double in = x[r * INPUTS + i], w = values[i * OUTPUTS + o];
          sum += in * w, size += fabs(w), amax = fmax(amax, fabs(in));
        }
        double error = fabs(y[r * OUTPUTS + o] - sum * scales[o]);
        double bound = size * scales[o] * amax / 127 * (0.5 / 254 + 0x1p-17) + fabs(sum * scales[o]) * 0x1p-21;
        worst = fmax(worst, error / bound);
        ok = ok && error <= bound;
      }
    linear_weights_free(weights);
  }
  crew_end(crew);
  printf("%s error: at most %.3f of the bound\n", ok ? "OK" : "FAILED", worst);
  return ok;
}

int main(int count, char **arguments) {
  static const size_t inputs[] = {1, 3, 31, 64, 100, 512, 1408, 4097};
  const LinearTest test = {LINEAR_INT8, make_case, inputs, COUNT(inputs)};
  need_vectors();
  const bool timed = count > 1 && strcmp(arguments[1], "time") == 0;
  const bool ok = timed || (check_elementwise() && check_error());
  return linear_test(&test, count, arguments) && ok ? 0 : 1;
}
