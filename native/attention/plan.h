// How a call of attention is cut: tokens into parts of one span each, parts into tasks for threads. Nothing here
// changes a bit of the result.
#ifndef FLYWHEEL_ATTENTION_PLAN_H
#define FLYWHEEL_ATTENTION_PLAN_H

#include "attention/tile.h"

typedef struct {
  const AttentionShape *shape;
  void *cache;  // floats, or halves
  const Span *spans;
  size_t span_count;
  const float *q, *k, *v;  // k = NULL: all are stored
  size_t q_stride, k_stride, v_stride;
  const float *cos, *sin;  // [rows][turned / 2], of queries and keys
  size_t turned;
  const int64_t *wanted;  // rows; NULL = 0 .. wanted_count - 1
  size_t wanted_count;
  float *out;
  const Crew *crew;
} Call;

// Tokens of one span, all heads.
typedef struct {
  size_t span;
  size_t first, count;            // of the plan's tokens
  size_t first_group, end_group;  // groups of blocks that they see
  size_t pieces;                  // tasks per head set
  size_t sums;                    // with several pieces: where the groups' sums of the first head set are
  double cost;                    // microseconds, roughly
} Part;

typedef struct {
  size_t part, head_set, piece;
} Task;

typedef struct {
  const Call *call;
  TileToken *tokens;
  Part *parts;
  size_t part_count;
  // A head set is the query heads of one key head, or some of them if they are too many for a tile.
  size_t set_heads, sets_per_kv_head, head_sets;
  double cost;
  // From here on by plan_tasks.
  Task *tasks;
  size_t task_count;
  size_t *pieces_left;     // [parts][head_sets]
  unsigned char *storing;  // [spans] 1 = its only part stores its keys and values
  float *sums;
} Plan;

// Makes parts, and zeros of rows that have no span. False = out of memory; plan_free in any case.
bool plan_parts(Plan *plan, const Call *call);

// Makes tasks, the longest first.
bool plan_tasks(Plan *plan);

void plan_free(Plan *plan);

// The tile of a part and a head set.
Tile plan_tile(const Plan *plan, const Part *part, size_t head_set);

// Floats of one group's sums of a part and one head set.
size_t plan_sums_floats(const Plan *plan, const Part *part);

#endif
