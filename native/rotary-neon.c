// Rotation on arm64 with 128-bit vectors.
#if defined(__aarch64__)
#include "rotary-row.h"
#endif
