// A linear map: chooses the product for the processor and the number of rows, and does the tasks that
// linear/plan.c cuts it into. One thread finishes each output, so no cut changes bits.

#include <stdlib.h>

#include "linear/plan.h"
#include "rows/elementwise.h"
#include "threads/pieces.h"

enum { FETCHED_BYTES = 64 << 10 };  // of a thread's weights, before it multiplies

static const LinearPath *path_for(const LinearWeights *weights, size_t rows) {
  const LinearPath *const *path = linear_paths(weights->type);
  while (rows < (*path)->least_rows) path++;
  return *path;
}

typedef struct {
  const LinearPath *path;
  const LinearWeights *weights;
  const LinearPrologue *prologue;
  const float *x;
  Result result;
  Digits digits;
  Plan plan;
  Pieces *pieces;   // [plan.row_tasks]: of the digits that the tasks of the same rows need
  float *kept;      // [rows][inputs]: the rows as they are multiplied, or NULL
  float *prepared;  // [tasks][room]: a row on its way to digits, if it is not kept
  size_t room;
  LoraWork *adapters;  // what the tasks do of them, or NULL
} Job;

// The row that is multiplied. `room`: for a row that is not kept.
static const float *prepare_row(const Job *job, size_t row, float *room) {
  const LinearPrologue *prologue = job->prologue;
  size_t n = job->weights->inputs;
  float *to = job->kept != NULL ? job->kept + row * n : room;
  const float *x = job->x + row * n;
  switch (prologue->kind) {
    case INPUT_PLAIN:
      return x;
    case INPUT_RMS_NORM:
      rms_norm_row(x, prologue->norm_weight, n, prologue->epsilon, to);
      return to;
    case INPUT_GATED_SILU:
    case INPUT_GATED_GELU:
      x += row * n;
      gated_row(x, x + n, n, prologue->kind == INPUT_GATED_SILU ? SILU : GELU_TANH, to);
      return to;
  }
  return x;
}

static void make_digits(const Job *job, size_t first, size_t end, float *room) {
  const Digits *digits = &job->digits;
  size_t height = digits->height;
  for (size_t row = first; row < end; row++) {
    uint8_t *block = digits->bytes + row / height * row_block_bytes(digits, job->weights->chunks);
    const float *x = prepare_row(job, row, room);
    digits->units[row] = job->path->round(x, job->weights->inputs, block, row % height, height);
  }
}

// Asks for the first weights of a part. They come while other threads still make digits.
static void fetch_weights(const LinearWeights *weights, const Part *part) {
  size_t length = block_bytes(weights), bytes = (part->end_block - part->first_block) * length;
  const uint8_t *first = weights->tiles + part->first_block * length;
  for (size_t i = 0; i < at_most(bytes, FETCHED_BYTES); i += 64) __builtin_prefetch(first + i, 0, 2);
}

// Digits of rows first .. end - 1, together with the threads that need them too. `part`: what this thread multiplies
// then.
static void share_digits(const Job *job, Pieces *pieces, size_t first, size_t end, const Part *part, float *room) {
  size_t rows = end - first, count = divide_up(rows, job->plan.piece_rows);
  for (size_t piece; piece_begin(pieces, count, &piece); piece_end(pieces))
    make_digits(job, first + piece * rows / count, first + (piece + 1) * rows / count, room);
  fetch_weights(job->weights, part);
  pieces_wait(pieces, count);
}

// Tasks of the same rows follow each other.
static void do_task(void *data, size_t index) {
  const Job *job = data;
  const Plan *plan = &job->plan;
  size_t row = index / plan->block_tasks, block = index % plan->block_tasks, width = job->path->width;
  Part part = {
      .first_rows = row * plan->row_blocks / plan->row_tasks,
      .end_rows = (row + 1) * plan->row_blocks / plan->row_tasks,
      .first_block = block * plan->block_units / plan->block_tasks * width,
      .end_block = at_most((block + 1) * plan->block_units / plan->block_tasks * width, job->weights->blocks),
  };
  size_t height = job->digits.height, end = at_most(part.end_rows * height, job->digits.rows);
  share_digits(job, &job->pieces[row], part.first_rows * height, end, &part, job->prepared + index * job->room);
  if (job->adapters != NULL) lora_narrow_together(job->adapters);
  job->path->product(job->weights, &job->digits, part, job->result);
  if (job->adapters != NULL)
    lora_widen_outputs(job->adapters, part.first_block * BLOCK_OUTPUTS,
                       at_most(part.end_block * BLOCK_OUTPUTS, job->weights->outputs));
}

// Scratch memory lives for one call: the rows' digits and units, what has been done of them, and rows on their way, or
// all of them if adapters need them.
static void *scratch(Job *job, bool adapted) {
  Digits *digits = &job->digits;
  size_t tasks = job->plan.row_tasks * job->plan.block_tasks, inputs = job->weights->inputs;
  bool has_room = job->prologue->kind == INPUT_PLAIN || job->prologue->kept != NULL;
  job->room = has_room || adapted ? 0 : divide_up(inputs, 16) * 16;
  size_t kept = has_room || !adapted ? 0 : divide_up(digits->rows * inputs, 16) * 16;
  size_t prepared = (tasks * job->room + kept) * sizeof(float), pieces = job->plan.row_tasks * sizeof(Pieces);
  size_t bytes = divide_up(digits->rows, digits->height) * row_block_bytes(digits, job->weights->chunks);
  size_t units = divide_up(digits->rows, 16) * 16 * sizeof(float);
  uint8_t *memory = aligned_alloc(64, pieces + prepared + bytes + units);
  if (memory == NULL) return NULL;
  job->pieces = (Pieces *)memory;
  for (size_t i = 0; i < job->plan.row_tasks; i++) pieces_init(&job->pieces[i]);
  job->prepared = (float *)(memory + pieces);
  job->kept = kept > 0 ? job->prepared : job->prologue->kept;
  digits->bytes = memory + pieces + prepared;
  digits->units = (float *)(digits->bytes + bytes);
  return memory;
}

static void do_tasks(Job *job, const Crew *crew) {
  size_t tasks = job->plan.row_tasks * job->plan.block_tasks;
  if (job->plan.shared) crew->run(crew->pool, tasks, do_task, job);
  else
    for (size_t i = 0; i < tasks; i++) do_task(job, i);
}

// The map and its adapters. If threads make outputs of all rows, each adds the adapters to those that it has just made,
// while they are in its cache.
static bool do_adapted(Job *job, const Adapters *adapters, const Crew *crew) {
  const float *rows = job->kept != NULL ? job->kept : job->x;
  LoraWork *work = lora_begin(adapters, rows, job->digits.rows, job->result.residual, job->result.y, crew->threads);
  if (work == NULL) return false;
  bool together = job->plan.row_tasks == 1 && lora_by_outputs(work);
  job->adapters = together ? work : NULL;
  job->result.residual = NULL;
  do_tasks(job, crew);
  if (!together) lora_run(work, crew);
  lora_end(work);
  return true;
}

bool linear_map_by(const LinearPath *path, const LinearWeights *weights, const LinearPrologue *prologue, const float *x,
                    size_t rows, const Adapters *adapters, Result result, const Crew *crew) {
  if (rows == 0 || weights->outputs == 0) return true;
  Job job = {.path = path, .weights = weights, .prologue = prologue, .x = x, .result = result};
  job.digits = (Digits){.rows = rows, .height = divide_up(rows, divide_up(rows, path->height)),
                        .chunk_bytes = path->chunk_bytes};
  job.plan = linear_plan(path, weights, prologue->kind, &job.digits, crew);
  void *memory = scratch(&job, adapters != NULL);
  if (memory == NULL) return false;
  bool done = true;
  if (adapters == NULL) do_tasks(&job, crew);
  else done = do_adapted(&job, adapters, crew);
  free(memory);
  return done;
}

bool linear_map(const LinearWeights *weights, const LinearPrologue *prologue, const float *x, size_t rows,
                const Adapters *adapters, const float *residual, float *y, const Crew *crew) {
  return linear_map_by(path_for(weights, rows), weights, prologue, x, rows, adapters, (Result){residual, y}, crew);
}

void linear_weights_free(LinearWeights *weights) {
  if (weights == NULL) return;
  linear_memory_give(weights->slab);
  free(weights);
}

size_t linear_weights_inputs(const LinearWeights *weights) { return weights->inputs; }

size_t linear_weights_outputs(const LinearWeights *weights) { return weights->outputs; }
