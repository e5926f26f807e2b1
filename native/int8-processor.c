// What this processor can do. Compiled for any processor, unlike the files that it decides about.

#include "int8-parts.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// Register states that the system keeps for each thread: one bit each. 0 = it does not say.
static unsigned kept_states(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool int8_avx512_runs(void) {
  unsigned a, b, c, d;
  const unsigned states = 0xe6;  // xmm, ymm, mask, zmm
  const unsigned wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
  if ((kept_states() & states) != states || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (b & wanted) == wanted && (c & bit_AVX512VNNI) != 0;
}

bool int8_amx_runs(void) {
  unsigned a, b, c, d;
  const unsigned states = 3 << 17, wanted = bit_AMX_TILE | bit_AMX_INT8;
  if ((kept_states() & states) != states || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & wanted) != wanted) return false;
  // Linux keeps tiles only for processes that asked. The answer holds for all threads.
  const int permission = 0x1023, tiles = 18;
  return syscall(SYS_arch_prctl, permission, tiles) == 0;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

bool int8_neon_runs(void) {
  const unsigned long dot_products = 1 << 20;
  return (getauxval(AT_HWCAP) & dot_products) != 0;
}

#endif
