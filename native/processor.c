// Asks the processor. Compiled for any processor, unlike the files that it decides about.

#include "processor.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// Registers that the system must keep for each thread: one bit each.
enum { VECTORS_OF_256 = 0x6, VECTORS_OF_512 = 0xe6, TILES = 3 << 17 };

typedef struct {
  unsigned b, c, d;
} Features;

// False = the system does not keep these registers, or the processor is old.
static bool read_features(unsigned states, Features *of_leaf_7) {
  unsigned a, b, c, d, low, high;
  const unsigned wanted = bit_OSXSAVE | bit_FMA | bit_F16C;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & wanted) != wanted) return false;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & states) == states && __get_cpuid_count(7, 0, &a, &of_leaf_7->b, &of_leaf_7->c, &of_leaf_7->d);
}

#if defined(VECTORS_AVX512)

bool processor_has_vectors(void) {
  Features features;
  const unsigned wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
  return read_features(VECTORS_OF_512, &features) && (features.b & wanted) == wanted;
}

bool processor_has_vnni(void) {
  Features features;
  return read_features(VECTORS_OF_512, &features) && (features.c & bit_AVX512VNNI) != 0;
}

bool processor_has_amx(void) {
  Features features;
  const unsigned wanted = bit_AMX_TILE | bit_AMX_INT8;
  if (!read_features(TILES, &features) || (features.d & wanted) != wanted) return false;
  // Linux keeps tiles only for processes that asked. The answer holds for all threads.
  const int permission = 0x1023, tiles = 18;
  return syscall(SYS_arch_prctl, permission, tiles) == 0;
}

#elif defined(VECTORS_AVX2)

bool processor_has_vectors(void) {
  Features features;
  return read_features(VECTORS_OF_256, &features) && (features.b & bit_AVX2) != 0;
}

#endif

#elif defined(__aarch64__)

#include <sys/auxv.h>

bool processor_has_vectors(void) {
  const unsigned long dot_products = 1 << 20;
  return (getauxval(AT_HWCAP) & dot_products) != 0;
}

#endif
