// Attention of a tile on arm64 with 128-bit vectors.
#if defined(__aarch64__)
#include "attention-kernel.h"
#endif
