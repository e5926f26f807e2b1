// The part of attention that is compiled for a processor's vectors: tokens of one sequence and the query heads that
// share a key head. attention/attention.c cuts a call into tiles.
#ifndef FLYWHEEL_ATTENTION_TILE_H
#define FLYWHEEL_ATTENTION_TILE_H

#include "kernels.h"

// Groups of so many blocks are summed apart and then joined in order, so threads can share a long past. Part of the
// result's bits: one group after the other gives the same ones.
#define GROUP_BLOCKS 8

typedef struct {
  int64_t position;
  const float *q;          // [heads][head_dim], all heads of the token
  const float *cos, *sin;  // [turned / 2]
  float *out;              // the same shape as q
} TileToken;

typedef struct {
  const AttentionShape *shape;
  const void *cache;  // floats, or halves
  const int64_t *blocks;  // of the sequence
  size_t kv_head;
  size_t first_head, heads;  // query heads that the tile computes
  size_t turned;             // numbers of a query that are still to be rotated
  const TileToken *tokens;
  size_t count;
} Tile;

// Most rows (tokens × heads) of a tile; 0 = none, for enormous heads or blocks.
size_t tile_most_rows(const AttentionShape *shape);

// Floats of the sums of one group.
size_t tile_sums_floats(const AttentionShape *shape, size_t rows);

// Attends to all groups and writes `out`.
void tile_attend(const Tile *tile, size_t first_group, size_t end_group);

// Leaves the sums of each group in `sums`, aligned to 64 bytes.
void tile_sum_groups(const Tile *tile, size_t first_group, size_t end_group, float *sums);

// Joins the sums of `groups` groups and writes `out`. Overwrites `sums`.
void tile_join_groups(const Tile *tile, float *sums, size_t groups);

#endif
