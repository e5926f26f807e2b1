// How a linear map is cut into tasks.
#ifndef FLYWHEEL_LINEAR_PLAN_H
#define FLYWHEEL_LINEAR_PLAN_H

#include "linear/parts.h"
#include "sizes.h"

// row_tasks x block_tasks tasks, none of them empty.
typedef struct {
  size_t row_blocks, block_units;  // what is cut: row blocks, and output blocks in units of path->width
  size_t row_tasks, block_tasks;
  size_t piece_rows;               // most rows whose digits one thread makes at once
  bool shared;                     // by threads; otherwise one does all
} Plan;

Plan linear_plan(const LinearPath *path, const LinearWeights *weights, LinearInput input, const Digits *digits,
                 const Crew *crew);

#endif
