// The shape of attention and of its paged cache.
#ifndef FLYWHEEL_ATTENTION_SHAPE_H
#define FLYWHEEL_ATTENTION_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  size_t heads, kv_heads, head_dim;
  size_t block;   // positions per block
  size_t window;  // positions that a token sees, itself included; 0 = all before it
  float scale;    // factor on scores
  float softcap;  // 0 = none
  bool half;      // the cache holds numbers of two bytes (rows/half.h)
} AttentionShape;

// Bytes of one number of the cache.
static inline size_t attention_element_bytes(const AttentionShape *shape) {
  return shape->half ? sizeof(uint16_t) : sizeof(float);
}

// Numbers of one block of one layer. Keys first, [kv_heads][head_dim][block], then values, [kv_heads][block][head_dim].
static inline size_t attention_block_elements(const AttentionShape *shape) {
  return 2 * shape->kv_heads * shape->head_dim * shape->block;
}

#endif
