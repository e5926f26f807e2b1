// The int8 linear map: chooses the product for the processor and the number of rows, and does the tasks that
// int8-plan.c cuts it into. All sums are exact integers and one thread finishes each output, so no choice changes bits.

#include <stdatomic.h>
#include <stdlib.h>

#include "elementwise.h"
#include "int8-plan.h"

enum { FETCHED_BYTES = 64 << 10 };  // of a thread's weights, before it multiplies

#if defined(__x86_64__)
enum { AMX_ROWS = 8 };  // fewer rows leave most of a tile empty
static const Int8Path *const known_paths[] = {&int8_avx512, &int8_amx, NULL};
#elif defined(__aarch64__)
static const Int8Path *const known_paths[] = {&int8_neon, NULL};
#endif

const Int8Path *const *int8_paths(void) {
  static const Int8Path *usable[sizeof known_paths / sizeof *known_paths];
  static atomic_int state;  // 0 = unknown, 1 = being found, 2 = known
  int unknown = 0;
  if (atomic_load_explicit(&state, memory_order_acquire) == 2) return usable;
  if (atomic_compare_exchange_strong(&state, &unknown, 1)) {
    size_t count = 0;
    for (size_t i = 0; known_paths[i] != NULL; i++)
      if (known_paths[i]->runs_here()) usable[count++] = known_paths[i];
    atomic_store_explicit(&state, 2, memory_order_release);
  } else {
    while (atomic_load_explicit(&state, memory_order_acquire) != 2) continue;
  }
  return usable;
}

bool kernels_run_here(void) {
  return int8_paths()[0] != NULL;
}

static const Int8Path *path_for(size_t rows) {
  const Int8Path *const *paths = int8_paths();
#if defined(__x86_64__)
  if (rows >= AMX_ROWS && paths[1] != NULL) return paths[1];
#endif
  (void)rows;
  return paths[0];
}

// The digits of a task's rows are made in pieces, by whoever comes first: threads that multiply the same rows do pieces
// until none is left, and wait for those that others have begun.
typedef struct {
  _Alignas(64) atomic_size_t begun;
  atomic_size_t done;
} Progress;

typedef struct {
  const Int8Path *path;
  const Int8Weights *weights;
  const Int8Prologue *prologue;
  const float *x;
  Result result;
  Digits digits;
  Plan plan;
  Progress *progress;   // [plan.row_tasks]
  float *prepared;      // [tasks][room]: a row on its way to digits, if it is not kept
  size_t room;
} Job;

// The row that is multiplied. `room`: for a row that is not kept.
static const float *prepare_row(const Job *job, size_t row, float *room) {
  const Int8Prologue *prologue = job->prologue;
  size_t n = job->weights->inputs;
  float *to = prologue->kept != NULL ? prologue->kept + row * n : room;
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
  size_t stride = digits->height * CHUNK;
  for (size_t row = first; row < end; row++) {
    uint8_t *bytes = digits->bytes + row / digits->height * row_block_bytes(digits, job->weights->chunks) +
                     row % digits->height * CHUNK;
    const float *x = prepare_row(job, row, room);
    digits->units[row] = int8_row_digits(x, job->weights->inputs, job->path->flip, bytes, stride);
  }
}

// Asks for the first weights of a part. They come while other threads still make digits.
static void fetch_weights(const Int8Weights *weights, const Part *part) {
  size_t block_bytes = weights->chunks * TILE, bytes = (part->end_block - part->first_block) * block_bytes;
  const int8_t *first = weights->tiles + part->first_block * block_bytes;
  for (size_t i = 0; i < at_most(bytes, FETCHED_BYTES); i += 64) __builtin_prefetch(first + i, 0, 2);
}

// Digits of rows first .. end - 1, together with the threads that need them too. `part`: what this thread multiplies
// then.
static void share_digits(const Job *job, Progress *progress, size_t first, size_t end, const Part *part, float *room) {
  size_t rows = end - first, pieces = divide_up(rows, job->plan.piece_rows), piece;
  while ((piece = atomic_fetch_add_explicit(&progress->begun, 1, memory_order_relaxed)) < pieces) {
    make_digits(job, first + piece * rows / pieces, first + (piece + 1) * rows / pieces, room);
    atomic_fetch_add_explicit(&progress->done, 1, memory_order_release);
  }
  fetch_weights(job->weights, part);
  for (size_t turn = 0; atomic_load_explicit(&progress->done, memory_order_acquire) < pieces; turn++)
    pause_briefly(turn);
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
  share_digits(job, &job->progress[row], part.first_rows * height, end, &part, job->prepared + index * job->room);
  job->path->product(job->weights, &job->digits, part, job->result);
}

// Scratch memory lives for one call: the rows' digits and units, what has been done of them, and rows on their way.
static void *scratch(Job *job) {
  Digits *digits = &job->digits;
  size_t tasks = job->plan.row_tasks * job->plan.block_tasks;
  bool in_place = job->prologue->kind == INPUT_PLAIN || job->prologue->kept != NULL;
  job->room = in_place ? 0 : divide_up(job->weights->inputs, 16) * 16;
  size_t prepared = tasks * job->room * sizeof(float), progress = job->plan.row_tasks * sizeof(Progress);
  size_t bytes = divide_up(digits->rows, digits->height) * row_block_bytes(digits, job->weights->chunks);
  size_t units = divide_up(digits->rows, 16) * 16 * sizeof(float);
  uint8_t *memory = aligned_alloc(64, progress + prepared + bytes + units);
  if (memory == NULL) return NULL;
  job->progress = (Progress *)memory;
  for (size_t i = 0; i < job->plan.row_tasks; i++) {
    atomic_init(&job->progress[i].begun, 0);
    atomic_init(&job->progress[i].done, 0);
  }
  job->prepared = (float *)(memory + progress);
  digits->bytes = memory + progress + prepared;
  digits->units = (float *)(digits->bytes + bytes);
  return memory;
}

bool int8_linear_by(const Int8Path *path, const Int8Weights *weights, const Int8Prologue *prologue, const float *x,
                    size_t rows, Result result, const Crew *crew) {
  if (rows == 0 || weights->outputs == 0) return true;
  Job job = {.path = path, .weights = weights, .prologue = prologue, .x = x, .result = result};
  job.digits = (Digits){.rows = rows, .height = divide_up(rows, divide_up(rows, path->height))};
  job.plan = int8_plan(path, weights, prologue->kind, &job.digits, crew);
  void *memory = scratch(&job);
  if (memory == NULL) return false;
  size_t tasks = job.plan.row_tasks * job.plan.block_tasks;
  if (job.plan.shared) crew->run(crew->pool, tasks, do_task, &job);
  else
    for (size_t i = 0; i < tasks; i++) do_task(&job, i);
  free(memory);
  return true;
}

bool int8_linear(const Int8Weights *weights, const Int8Prologue *prologue, const float *x, size_t rows,
                 const float *residual, float *y, const Crew *crew) {
  return int8_linear_by(path_for(rows), weights, prologue, x, rows, (Result){residual, y}, crew);
}
