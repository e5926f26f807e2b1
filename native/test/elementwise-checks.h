// Checks elementwise operations against double precision.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads/crew.h"
#include "rows/elementwise.h"
#include "random.h"

static double activated(double x, Activation activation, double *argument) {
  *argument = activation == SILU ? x : sqrt(8 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
  return x / (1 + exp(-*argument));
}

// NaN is the largest.
static __attribute__((noinline)) double larger_error(double a, double b) {
  return a >= b ? a : isnan(b) ? INFINITY : b;
}

// Largest error in units of the bound. Gated: 4e-7 of the result, for each unit that the sigmoid's rounded argument is
// large (silu's is not rounded). Results below 1e-35 may be 0.
static double gated_error(const float *gate, const float *up, size_t n, Activation activation, const float *y) {
  double worst = 0;
  for (size_t i = 0; i < n; i++) {
    double argument, exact = activated(gate[i], activation, &argument) * up[i];
    double factor = activation == SILU ? 1 : 1 + fmax(0, -argument);
    double bound = 4e-7 * factor * fabs(exact) + 1e-35 * fmax(1, fabs((double)up[i]));
    worst = larger_error(worst, fabs(exact) < 3e38 ? fabs(y[i] - exact) / bound : 0);  // beyond: single precision ends
  }
  return worst;
}

// 1e-6 of the result.
static double norm_error(const float *x, const float *weight, size_t n, double epsilon, const float *y) {
  double sum = 0, worst = 0;
  for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
  for (size_t i = 0; i < n; i++) {
    double exact = x[i] / sqrt(sum / (double)n + epsilon) * weight[i];
    worst = larger_error(worst, fabs(y[i] - exact) / (1e-6 * fabs(exact) + 1e-37));
  }
  return worst;
}

// Of the bits of numbers, to compare processors.
static uint32_t hash_bits(uint32_t hash, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    hash = (hash ^ bits) * 16777619u;
  }
  return hash;
}

static bool check_accuracy(void) {
  double norm = 0, silu = 0, gelu = 0;
  uint32_t hash = 0;
  for (size_t n = 1; n < 6000; n += n < 70 ? 1 : 577) {
    float *x = malloc(4 * n * sizeof *x), *weight = x + n, *y = x + 2 * n;
    for (int turn = 0; turn < 12; turn++) {
      const float size = (float[]){1, 30, 300, 1e-4f, 1e5f, 1e15f}[turn % 6];
      for (size_t i = 0; i < n; i++) x[i] = random_number() * size, weight[i] = random_number() * 3;
      rms_norm_row(x, weight, n, 1e-5f, y);
      norm = fmax(norm, norm_error(x, weight, n, 1e-5f, y));
      hash = hash_bits(hash, y, n);
      gated_row(x, weight, n, SILU, y);
      silu = fmax(silu, gated_error(x, weight, n, SILU, y));
      hash = hash_bits(hash, y, n);
      gated_row(x, weight, n, GELU_TANH, y);
      gelu = fmax(gelu, gated_error(x, weight, n, GELU_TANH, y));
      hash = hash_bits(hash, y, n);
    }
    free(x);
  }
  bool ok = norm <= 1 && silu <= 1 && gelu <= 1;
  printf("%s elementwise accuracy: %.2f %.2f %.2f of the bounds (norm, silu, gelu), bits %08x\n", ok ? "OK" : "FAILED",
         norm, silu, gelu, hash);
  return ok;
}

// Whether a == b or both are NaN.
static __attribute__((noinline)) bool equal(float a, float b) {
  return a == b || (isnan(a) && isnan(b));
}

// Numbers at the ends, alone and beside others. Tiny results may be 0.
static bool check_ends(void) {
  enum { ENDS = 21 };
  static const float ends[ENDS] = {3e38f, -3e38f, 1e20f, -1e20f, INFINITY, NAN, 100, 1e-40f, -1e-40f, -100, -90, -87};
  static const float results[ENDS] = {3e38f, 0, 1e20f, 0, INFINITY, NAN, 100};
  bool ok = true;
  for (Activation activation = SILU; activation <= GELU_TANH; activation++) {
    float gate[ENDS], up[ENDS], y[ENDS], alone;
    memcpy(gate, ends, sizeof gate);
    for (int i = 0; i < ENDS; i++) up[i] = 1;
    gated_row(gate, up, ENDS, activation, y);
    for (int i = 0; i < ENDS; i++) {
      gated_row(gate + i, up + i, 1, activation, &alone);
      if (!equal(alone, y[i]) || !equal(fabsf(y[i]) < 1e-35f ? 0 : y[i], results[i])) ok = false;
    }
    gated_row(gate, up, ENDS, activation, gate);  // in place
    for (int i = 0; i < ENDS; i++)
      if (!equal(gate[i], y[i])) ok = false;
  }
  printf("%s elementwise ends\n", ok ? "OK" : "FAILED");
  return ok;
}

// Many rows with threads: the bits of each row alone. A row of NaN changes no other.
static bool check_rows(size_t rows, size_t n, const Crew *crew) {
  float *x = malloc(4 * rows * n * sizeof *x), *up = x + rows * n, *y = up + rows * n, *row = y + rows * n;
  for (size_t i = 0; i < 2 * rows * n; i++) x[i] = random_number() * 5;
  x[rows / 2 * n] = NAN;
  bool ok = true;
  for (int kind = 0; kind < 3; kind++) {
    if (kind == 0) rms_norm(x, up, rows, n, 1e-6f, y, crew);
    else gated(x, up, n, rows, n, (Activation)(kind - 1), y, crew);
    for (size_t r = 0; r < rows; r++) {
      if (kind == 0) rms_norm_row(x + r * n, up, n, 1e-6f, row);
      else gated_row(x + r * n, up + r * n, n, (Activation)(kind - 1), row);
      ok = ok && (r == rows / 2 ? isnan(y[r * n]) : memcmp(row, y + r * n, n * sizeof *y) == 0);
    }
  }
  free(x);
  return ok;
}

static bool check_elementwise(void) {
  bool ok = check_accuracy() && check_ends();
  for (size_t threads = 1; threads <= 5; threads += 2) {
    Crew crew = crew_of(threads, 200);
    ok = ok && check_rows(1, 512, &crew) && check_rows(7, 33, &crew) && check_rows(513, 700, &crew);
    crew_end(crew);
  }
  printf("%s elementwise\n", ok ? "OK" : "FAILED");
  return ok;
}
