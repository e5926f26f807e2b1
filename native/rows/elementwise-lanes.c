// One row of an elementwise operation.
#include "rows/elementwise.h"
#include "vectors/vectors.h"

// --- y = x / sqrt(mean of x² + epsilon) * weight ---

enum { SUMS = 64 };  // sums of squares side by side: number i goes to sum i mod 64
#define SUM_VECTORS (SUMS / LANES)

INLINE void add_squares(Lanes *sums, const float *x) {
  UNROLLED for (size_t i = 0; i < SUM_VECTORS; i++) {
    const Lanes value = lanes_load(x + i * LANES);
    sums[i] = lanes_plus(sums[i], value, value);
  }
}

static float sum_of_squares(const float *x, size_t n) {
  Lanes sums[SUM_VECTORS];
  UNROLLED for (size_t i = 0; i < SUM_VECTORS; i++) sums[i] = lanes_all(0);
  size_t i = 0;
  for (; i + SUMS <= n; i += SUMS) add_squares(sums, x + i);
  if (i < n) {
    float last[SUMS] = {0};
    for (size_t j = 0; i + j < n; j++) last[j] = x[i + j];
    add_squares(sums, last);
  }
  float sixteen[16];
  UNROLLED for (size_t p = 0; p < PARTS; p++) {
    const Lanes first = lanes_add(sums[p], sums[p + PARTS]);
    const Lanes second = lanes_add(sums[p + 2 * PARTS], sums[p + 3 * PARTS]);
    lanes_store(sixteen + p * LANES, lanes_add(first, second));
  }
  return sum_of_sixteen(sixteen);
}

void rms_norm_row(const float *x, const float *weight, size_t n, float epsilon, float *y) {
  const float inverse = 1.0f / square_root(sum_of_squares(x, n) / (float)n + epsilon);
  const Lanes factor = lanes_all(inverse);
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    lanes_store(y + i, lanes_mul(lanes_mul(lanes_load(x + i), factor), lanes_load(weight + i)));
  if (i < n) {
    const Lanes last = lanes_mul(lanes_load_some(x + i, n - i), factor);
    lanes_store_some(y + i, lanes_mul(last, lanes_load_some(weight + i, n - i)), n - i);
  }
}

// --- y = activation(gate) * up ---

// log2(e) in single precision, and what that lacks.
#define LOG2E 1.44269502f
#define LOG2E_REST 1.92596303e-8f
// Powers of 2^-125 and less are 0.
#define LEAST_POWER (-125.0f)

// e^x for x <= 0: 2^(whole - excess) with |excess| <= 1/2, and a polynomial for 2^-excess (as in attention/softmax.h).
INLINE Lanes power_below_one(Lanes x) {
  const Lanes whole = lanes_round(lanes_mul(x, lanes_all(LOG2E)));
  const Lanes excess = lanes_minus(lanes_minus(whole, x, lanes_all(LOG2E)), x, lanes_all(LOG2E_REST));
  const Lanes square = lanes_mul(excess, excess);
  const Lanes high = lanes_plus(lanes_all(0.0013398874867325613f), excess, lanes_all(-0.00015353360623180648f));
  const Lanes middle = lanes_plus(lanes_all(0.05550332469692038f), excess, lanes_all(-0.00961843736645945f));
  const Lanes low = lanes_plus(lanes_all(0.6931472028559719f), excess, lanes_all(-0.24022647913498443f));
  const Lanes slope = lanes_plus(low, lanes_plus(middle, high, square), square);
  return lanes_scale(lanes_minus(lanes_all(1), slope, excess), whole, LEAST_POWER);
}

// 1 / (1 + e^-x). Of the two forms the one whose power is below 1, so nothing overflows.
INLINE Lanes sigmoid(Lanes x) {
  const Lanes one = lanes_all(1), power = power_below_one(lanes_sign(x, lanes_all(-1)));
  return lanes_div(lanes_by_sign(x, power, one), lanes_add(one, power));
}

// gelu(x) = x / 2 * (1 + tanh(u)) = x * sigmoid(2u) with 2u = sqrt(8 / pi) * (x + 0.044715 x³).
#define GELU_FIRST 1.5957691216057308f
#define GELU_THIRD 0.07135481627260025f

INLINE Lanes gated_lanes(Lanes gate, Lanes up, Activation activation) {
  Lanes x = gate;
  if (activation == GELU_TANH)
    x = lanes_mul(x, lanes_plus(lanes_all(GELU_FIRST), lanes_mul(x, x), lanes_all(GELU_THIRD)));
  return lanes_mul(lanes_mul(gate, sigmoid(x)), up);
}

// Four vectors together on Arm: one alone waits for its own results most of the time.
INLINE void gated_by(const float *gate, const float *up, size_t n, const Activation activation, float *y) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Lanes results[PARTS];
    UNROLLED for (size_t p = 0; p < PARTS; p++)
      results[p] = gated_lanes(lanes_load(gate + i + p * LANES), lanes_load(up + i + p * LANES), activation);
    UNROLLED for (size_t p = 0; p < PARTS; p++) lanes_store(y + i + p * LANES, results[p]);
  }
  for (; i + LANES <= n; i += LANES)
    lanes_store(y + i, gated_lanes(lanes_load(gate + i), lanes_load(up + i), activation));
  if (i < n) {
    const Lanes last = gated_lanes(lanes_load_some(gate + i, n - i), lanes_load_some(up + i, n - i), activation);
    lanes_store_some(y + i, last, n - i);
  }
}

void gated_row(const float *gate, const float *up, size_t n, Activation activation, float *y) {
  if (activation == SILU) gated_by(gate, up, n, SILU, y);
  else gated_by(gate, up, n, GELU_TANH, y);
}
