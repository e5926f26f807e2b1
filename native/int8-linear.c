// The int8 linear map: chooses the product for the processor and the number of rows, turns rows into digits, and shares
// the work among threads. All sums are exact integers and one thread finishes each output, so no choice changes bits.

#include <stdatomic.h>
#include <stdlib.h>

#include "int8-parts.h"

// Rough costs, to decide how many threads are worth waking.
enum {
  STREAM_BYTES_PER_US = 20000,  // weights that one thread reads from memory
  DIGITS_PER_US = 2000,         // activations that one thread turns into digits
  WAKE_US = 20,                 // less work than this stays on the calling thread
  TASK_US = 5,                  // least work of a task
  GROUP_ROWS = 128,             // most rows of a task: their digits stay in the cache while weights pass
};

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

static size_t at_most(size_t value, size_t limit) {
  return value < limit ? value : limit;
}

static size_t ceil_div(size_t value, size_t divisor) {
  return (value + divisor - 1) / divisor;
}

typedef struct {
  const Int8Path *path;
  const Int8Weights *weights;
  const float *x;
  float *y;
  Digits digits;
  size_t row_blocks, block_units;     // what is shared: row blocks, and output blocks in units of path->width
  size_t row_tasks, block_tasks;      // the product's tasks: row_tasks x block_tasks
  size_t digit_tasks;
} Job;

static void digits_of(const Job *job, size_t first, size_t end) {
  const Digits *digits = &job->digits;
  size_t inputs = job->weights->inputs, stride = digits->height * CHUNK;
  for (size_t row = first; row < end; row++) {
    uint8_t *bytes = digits->bytes + row / digits->height * row_block_bytes(digits, job->weights->chunks) +
                     row % digits->height * CHUNK;
    digits->units[row] = int8_row_digits(job->x + row * inputs, inputs, job->path->flip, bytes, stride);
  }
}

static void digits_task(void *data, size_t index) {
  const Job *job = data;
  size_t rows = job->digits.rows;
  digits_of(job, index * rows / job->digit_tasks, (index + 1) * rows / job->digit_tasks);
}

// Tasks of the same rows follow each other.
static void product_task(void *data, size_t index) {
  const Job *job = data;
  size_t row = index / job->block_tasks, block = index % job->block_tasks, width = job->path->width;
  Part part = {
      .first_rows = row * job->row_blocks / job->row_tasks,
      .end_rows = (row + 1) * job->row_blocks / job->row_tasks,
      .first_block = block * job->block_units / job->block_tasks * width,
      .end_block = at_most((block + 1) * job->block_units / job->block_tasks * width, job->weights->blocks),
  };
  if (part.first_rows < part.end_rows && part.first_block < part.end_block)
    job->path->product(job->weights, &job->digits, part, job->y);
}

// Into how many tasks to cut the output blocks for a work of so many microseconds: each task is worth waking a thread
// for, and together they are a multiple of the threads where that can be.
static size_t block_tasks(float us, size_t row_tasks, size_t units, size_t threads) {
  if (threads <= 1 || us < WAKE_US) return 1;
  size_t most = at_most((size_t)(us / TASK_US), us > 8 * WAKE_US * (float)threads ? 4 * threads : threads);
  size_t tasks = ceil_div(most, row_tasks);
  while (tasks * row_tasks % threads != 0 && tasks * row_tasks >= threads && tasks < units) tasks++;
  return at_most(tasks, units);
}

static void share(Job *job, size_t threads) {
  const Int8Weights *weights = job->weights;
  size_t rows = job->digits.rows, height = job->digits.height;
  float macs = (float)rows * (float)weights->inputs * (float)weights->outputs;
  float streamed = (float)(weights->blocks * weights->chunks) * TILE / STREAM_BYTES_PER_US;
  float us = macs / job->path->macs_per_us > streamed ? macs / job->path->macs_per_us : streamed;
  job->row_blocks = ceil_div(rows, height);
  job->block_units = ceil_div(weights->blocks, job->path->width);
  job->row_tasks = ceil_div(job->row_blocks, ceil_div(GROUP_ROWS, height));
  job->block_tasks = block_tasks(us, job->row_tasks, job->block_units, threads);
  float digit_us = (float)rows * (float)weights->inputs / DIGITS_PER_US;
  bool apart = threads > 1 && digit_us > WAKE_US;
  job->digit_tasks = apart ? at_most(at_most(threads, rows), (size_t)(digit_us / TASK_US)) : 1;
}

// Scratch memory lives for one call: the rows' digits and units.
static void *scratch(Job *job, size_t rows) {
  size_t blocks = ceil_div(rows, job->path->height);
  Digits *digits = &job->digits;
  digits->rows = rows;
  digits->height = ceil_div(rows, blocks);
  size_t bytes = ceil_div(rows, digits->height) * row_block_bytes(digits, job->weights->chunks);
  uint8_t *memory = aligned_alloc(64, (bytes + rows * sizeof(float) + 63) / 64 * 64);
  digits->bytes = memory;
  digits->units = (float *)(memory + bytes);
  return memory;
}

static void run(const Crew *crew, size_t tasks, void (*task)(void *data, size_t index), Job *job) {
  if (crew->threads > 1 && tasks > 1) crew->run(crew->pool, tasks, task, job);
  else
    for (size_t i = 0; i < tasks; i++) task(job, i);
}

bool int8_linear_by(const Int8Path *path, const Int8Weights *weights, const float *x, size_t rows, float *y,
                    const Crew *crew) {
  if (rows == 0 || weights->outputs == 0) return true;
  Job job = {.path = path, .weights = weights, .x = x, .y = y};
  void *memory = scratch(&job, rows);
  if (memory == NULL) return false;
  share(&job, crew->threads);
  run(crew, job.digit_tasks, digits_task, &job);
  run(crew, job.row_tasks * job.block_tasks, product_task, &job);
  free(memory);
  return true;
}

bool int8_linear(const Int8Weights *weights, const float *x, size_t rows, float *y, const Crew *crew) {
  return int8_linear_by(path_for(rows), weights, x, rows, y, crew);
}
