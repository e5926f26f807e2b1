// Numbers of two bytes on x64 with 512-bit vectors.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512vl,avx512dq,avx2,fma")
#include "half-rows.h"
#endif
