// Numbers of two bytes against plain C: all that there are, those between them, and random ones.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads/crew.h"
#include "rows/half.h"
#include "need-vectors.h"
#include "random.h"
#include "slow-half.h"

static bool same(float a, float b) { return isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof(float)); }

static float of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Rounds `count` numbers, also in pieces that are no whole vectors.
static bool rounds(const float *x, size_t count) {
  uint16_t *halves = malloc((count + 1) * sizeof(uint16_t));
  float *wide = malloc((count + 1) * sizeof(float));
  bool good = true;
  for (size_t piece = 1; piece < 40; piece += 38) {
    for (size_t i = 0; i < count; i += piece) {
      const size_t size = count - i < piece ? count - i : piece;
      halves[i + size] = 0x1234;
      wide[i + size] = 7;
      halves_narrow(x + i, size, halves + i);
      halves_widen(halves + i, size, wide + i);
      good &= halves[i + size] == 0x1234 && wide[i + size] == 7;
    }
    for (size_t i = 0; i < count; i++) {
      const bool right = same(wide[i], slow_half(x[i])) && same(wide[i], half_value(halves[i]));
      if (!right) printf("  FAIL %a became %a, not %a\n", (double)x[i], (double)wide[i], (double)slow_half(x[i]));
      good &= right;
    }
  }
  free(halves), free(wide);
  return good;
}

// All halves, and what lies between each and the next: the middle and its neighbours.
static bool rounds_all(void) {
  float *x = malloc(5 * 65536 * sizeof(float));
  size_t count = 0;
  for (uint32_t half = 0; half < 65536; half++) {
    const float value = half_value((uint16_t)half), next = half_value((uint16_t)(half + 1));
    x[count++] = value;
    if (!isfinite(value) || !isfinite(next)) continue;
    const float middle = (value + next) / 2;
    x[count++] = middle;
    x[count++] = nextafterf(middle, value);
    x[count++] = nextafterf(middle, next);
  }
  const bool good = rounds(x, count);
  free(x);
  return good;
}

static bool rounds_random(void) {
  static float x[1 << 20];
  const size_t count = sizeof x / sizeof *x;
  for (size_t i = 0; i < count; i++) x[i] = of_bits((uint32_t)(random_bits() ^ random_bits() << 16));
  const float ends[] = {65504, 65519.996f, 65520, 65536, 1e10f, INFINITY, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-126f, 0};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) x[2 * i] = ends[i], x[2 * i + 1] = -ends[i];
  return rounds(x, count);
}

// Every way to share the work gives the same.
static bool rounds_shared(void) {
  const size_t count = 300001;
  float *x = malloc(count * sizeof(float)), *y = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; i++) x[i] = 100 * random_number();
  bool good = true;
  for (size_t threads = 1; threads <= 16; threads += 5) {
    const Crew crew = crew_of(threads, 200);
    memcpy(y, x, count * sizeof(float));
    halves_round(y, count, y, &crew);
    for (size_t i = 0; i < count; i++) good &= same(y[i], slow_half(x[i]));
    crew_end(crew);
  }
  free(x), free(y);
  return good;
}

int main(void) {
  need_vectors();
  const bool good = rounds_all() & rounds_random() & rounds_shared();
  puts(good ? "OK" : "FAIL");
  return !good;
}
