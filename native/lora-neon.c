// Rows through adapters on arm64 with 128-bit vectors.
#if defined(__aarch64__)
#include "lora-rows.h"
#endif
