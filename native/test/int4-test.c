// Checks the int4 linear map's paths against plain C, bit by bit, and times them (linear-test.h).
#include "int4/int4.h"
#include "linear-test.h"
#include "need-vectors.h"

typedef struct {
  const uint8_t *values;  // [outputs][inputs / 2]
  const float *scales;    // [outputs][inputs / 32]
  const float *bias;
  size_t inputs, outputs;
} PlainWeights;

static int32_t weight_of(const PlainWeights *w, size_t output, size_t input) {
  const uint8_t both = w->values[(output * w->inputs + input) / 2];
  return (input % 2 == 0 ? both & 15 : both >> 4) - INT4_ZERO;
}

// Digits of 32 inputs; returns their unit.
static float plain_digits(const float *x, int32_t digits[INT4_CHUNK]) {
  const float amax = largest(x, INT4_CHUNK), inverse = 127 / amax;
  for (size_t i = 0; i < INT4_CHUNK; i++) digits[i] = amax < TINY ? 0 : integer_within(rintf(x[i] * inverse), 127);
  return amax < 0 ? NAN : amax < TINY ? 0 : amax / 127;
}

static void plain_row(const PlainWeights *w, const float *x, float *y) {
  const size_t chunks = w->inputs / INT4_CHUNK;
  for (size_t o = 0; o < w->outputs; o++) y[o] = 0;
  for (size_t c = 0; c < chunks; c++) {
    int32_t digits[INT4_CHUNK];
    const float unit = plain_digits(x + c * INT4_CHUNK, digits);
    for (size_t o = 0; o < w->outputs; o++) {
      int64_t sum = 0;
      for (size_t i = 0; i < INT4_CHUNK; i++) sum += digits[i] * weight_of(w, o, c * INT4_CHUNK + i);
      y[o] = fmaf((float)exact(sum), w->scales[o * chunks + c] * unit, y[o]);
    }
  }
  for (size_t o = 0; w->bias != NULL && o < w->outputs; o++) y[o] += w->bias[o];
}

static Case make_case(const LinearPath *path, size_t inputs, size_t outputs, size_t rows, bool special, bool with_bias) {
  (void)path;  // all have the same bits
  const size_t chunks = inputs / INT4_CHUNK;
  uint8_t *values = malloc(inputs * outputs / 2);
  float *scales = malloc(chunks * outputs * sizeof *scales), *bias = with_bias ? malloc(outputs * sizeof *bias) : NULL;
  for (size_t i = 0; i < inputs * outputs / 2; i++) values[i] = (uint8_t)random_bits();
  // Two outputs have the largest sums.
  memset(values, 0xff, inputs / 2);
  memset(values + (outputs - 1) * inputs / 2, 0, inputs / 2);
  for (size_t i = 0; i < chunks * outputs; i++) scales[i] = random_number() * 0.01f;
  for (size_t i = 0; with_bias && i < outputs; i++) bias[i] = random_number();
  const PlainWeights plain_weights = {values, scales, bias, inputs, outputs};
  const Case c = case_of(int4_weights_pack(values, scales, bias, inputs, outputs), rows, special);
  for (size_t r = 0; r < rows; r++) plain_row(&plain_weights, c.x + r * inputs, c.expected + r * outputs);
  free(values), free(scales), free(bias);
  return c;
}

int main(int count, char **arguments) {
  static const size_t inputs[] = {32, 64, 96, 512, 1408, 4096};
  const LinearTest test = {LINEAR_INT4, make_case, inputs, COUNT(inputs)};
  need_vectors();
  return linear_test(&test, count, arguments) ? 0 : 1;
}
