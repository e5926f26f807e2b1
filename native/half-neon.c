// Numbers of two bytes on arm64 with 128-bit vectors.
#if defined(__aarch64__)
#include "half-rows.h"
#endif
