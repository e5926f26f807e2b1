// Work in pieces that threads do together: each takes pieces until none is left, and waits for those that others have
// begun before it uses their results.
#ifndef FLYWHEEL_PIECES_H
#define FLYWHEEL_PIECES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "threads/crew.h"

typedef struct {
  _Alignas(64) atomic_size_t begun;
  atomic_size_t done;
} Pieces;

static inline void pieces_init(Pieces *pieces) {
  atomic_init(&pieces->begun, 0);
  atomic_init(&pieces->done, 0);
}

// Takes one of `count` pieces. False = none is left.
static inline bool piece_begin(Pieces *pieces, size_t count, size_t *piece) {
  *piece = atomic_fetch_add_explicit(&pieces->begun, 1, memory_order_relaxed);
  return *piece < count;
}

static inline void piece_end(Pieces *pieces) { atomic_fetch_add_explicit(&pieces->done, 1, memory_order_release); }

static inline void pieces_wait(const Pieces *pieces, size_t count) {
  for (size_t turn = 0; atomic_load_explicit(&pieces->done, memory_order_acquire) < count; turn++) pause_briefly(turn);
}

#endif
