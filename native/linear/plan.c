// Cuts a linear map into tasks for threads, by rough costs in microseconds of one thread.

#include "linear/plan.h"

enum {
  STREAM_BYTES_PER_US = 20000,  // weights and digits that come from memory or from another processor's cache
  LONG_US = 150,                // work of a thread that is cut further, for threads that come late
  PIECE_US = 2,                 // digits that a thread makes at once
  GROUP_BYTES = 256 << 10,      // most digits of a task: they stay in the cache while weights pass
};

// Numbers that a thread turns into digits in a microsecond.
static float digits_per_us(LinearInput input) {
  return input == INPUT_PLAIN ? 3000 : input == INPUT_RMS_NORM ? 2000 : 1000;
}

typedef struct {
  float product, rows, weights;  // of one row block x one unit; to read a row block's digits, a unit's weights
} Costs;

// Microseconds until all tasks are done.
static float span(const Plan *plan, const Costs *costs, size_t row_tasks, size_t block_tasks, size_t workers) {
  float rows = (float)divide_up(plan->row_blocks, row_tasks), units = (float)divide_up(plan->block_units, block_tasks);
  float task = rows * units * costs->product + rows * costs->rows + units * costs->weights;
  return (float)divide_up(row_tasks * block_tasks, workers) * task;
}

// The best way to cut into about `wanted` tasks, in at least `least` row tasks.
static void cut(Plan *plan, const Costs *costs, size_t least, size_t wanted, size_t workers) {
  float best = 0;
  size_t most = at_most(plan->row_blocks, wanted > least ? wanted : least);
  plan->row_tasks = 0;
  for (size_t row_tasks = least; row_tasks <= most; row_tasks++) {
    size_t block_tasks = at_most(wanted > row_tasks ? wanted / row_tasks : 1, plan->block_units);
    float us = span(plan, costs, row_tasks, block_tasks, workers);
    if (plan->row_tasks != 0 && us >= best) continue;
    best = us;
    plan->row_tasks = row_tasks;
    plan->block_tasks = block_tasks;
  }
}

Plan linear_plan(const LinearPath *path, const LinearWeights *weights, LinearInput input, const Digits *digits,
                 const Crew *crew) {
  size_t row_bytes = row_block_bytes(digits, weights->chunks), unit_bytes = path->width * block_bytes(weights);
  Plan plan = {
      .row_blocks = divide_up(digits->rows, digits->height),
      .block_units = divide_up(weights->blocks, path->width),
      .block_tasks = 1,
  };
  float row_us = (float)weights->inputs / digits_per_us(input);
  Costs costs = {
      .product = (float)(digits->height * path->width * BLOCK_OUTPUTS * weights->inputs) / path->macs_per_us,
      .rows = (float)row_bytes / STREAM_BYTES_PER_US,
      .weights = (float)unit_bytes / STREAM_BYTES_PER_US,
  };
  float piece = PIECE_US / row_us;
  plan.piece_rows = piece < 1 ? 1 : piece < 64 ? (size_t)piece : 64;
  size_t least = at_most(divide_up(plan.row_blocks * row_bytes, GROUP_BYTES), plan.row_blocks);
  plan.row_tasks = least;
  float us = (float)(plan.row_blocks * plan.block_units) * costs.product;
  if (us < (float)plan.block_units * costs.weights) us = (float)plan.block_units * costs.weights;
  us += (float)digits->rows * row_us;
  size_t workers = crew_tasks(crew, us, crew->threads);
  if (workers == 1) return plan;
  cut(&plan, &costs, least, us > LONG_US * (float)workers ? 4 * workers : workers, workers);
  plan.shared = plan.row_tasks * plan.block_tasks > 1;
  return plan;
}
