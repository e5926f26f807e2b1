// Rows of elementwise operations on arm64 with 128-bit vectors.
#if defined(__aarch64__)
#include "elementwise-rows.h"
#endif
