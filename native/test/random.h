// Random numbers for tests, the same in every run.
#ifndef FLYWHEEL_TEST_RANDOM_H
#define FLYWHEEL_TEST_RANDOM_H

#include <stdint.h>

static uint64_t seed = 1;

static uint32_t random_bits(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 32);
}

// About normal.
static float random_number(void) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += (float)random_bits() * 0x1p-32f - 0.5f;
  return sum;
}

#endif
