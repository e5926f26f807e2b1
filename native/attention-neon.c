// Attention of a tile on arm64: 128-bit vectors, four at a time.
#if defined(__aarch64__)
#include "attention-kernel.h"
#endif
