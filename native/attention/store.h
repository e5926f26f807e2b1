// Puts new keys and values where a sequence's blocks are.
#ifndef FLYWHEEL_ATTENTION_STORE_H
#define FLYWHEEL_ATTENTION_STORE_H

#include "attention/plan.h"

// Rows from .. to - 1 of a span (counted from its first), of key heads first_head .. end_head - 1. Rotates keys.
void attention_store(const Call *call, const Span *span, int64_t from, int64_t to, size_t first_head, size_t end_head);

#endif
