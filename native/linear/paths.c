// Which ways to multiply this processor has.

#include <stdatomic.h>

#include "int4/int4.h"
#include "int8/int8.h"

enum { MOST_PATHS = 4 };

static const LinearPath *const known[LINEAR_TYPES][MOST_PATHS] = {
#if defined(VECTORS_AVX512)
    [LINEAR_INT8] = {&int8_amx, &int8_vnni, &int8_words},
    [LINEAR_INT4] = {&int4_vnni, &int4_pairs},
#elif defined(VECTORS_AVX2)
    [LINEAR_INT8] = {&int8_words},
    [LINEAR_INT4] = {&int4_pairs},
#elif defined(VECTORS_NEON)
    [LINEAR_INT8] = {&int8_neon},
    [LINEAR_INT4] = {&int4_neon},
#endif
};

const LinearPath *const *linear_paths(LinearType type) {
  static const LinearPath *usable[LINEAR_TYPES][MOST_PATHS + 1];
  static atomic_int state;  // 0 = unknown, 1 = being found, 2 = known
  int unknown = 0;
  if (atomic_load_explicit(&state, memory_order_acquire) == 2) return usable[type];
  if (atomic_compare_exchange_strong(&state, &unknown, 1)) {
    for (int t = 0; t < LINEAR_TYPES; t++) {
      size_t count = 0;
      for (size_t i = 0; i < MOST_PATHS && known[t][i] != NULL; i++)
        if (known[t][i]->runs_here()) usable[t][count++] = known[t][i];
    }
    atomic_store_explicit(&state, 2, memory_order_release);
  } else {
    while (atomic_load_explicit(&state, memory_order_acquire) != 2) continue;
  }
  return usable[type];
}

const char *int8_path_name(void) { return linear_paths(LINEAR_INT8)[0]->name; }
