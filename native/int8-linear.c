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
  size_t row_blocks, block_units;  // what is shared: row blocks, and output blocks in units of path->width
  size_t row_tasks, block_tasks;   // the product's tasks: row_tasks x block_tasks
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

static float larger(float a, float b) {
  return a > b ? a : b;
}

// Microseconds of the product on one thread.
static float cost(const Job *job) {
  const Int8Weights *weights = job->weights;
  float macs = (float)job->digits.rows * (float)weights->inputs * (float)weights->outputs;
  float streamed = (float)(weights->blocks * weights->chunks * TILE) / STREAM_BYTES_PER_US;
  return larger(macs / job->path->macs_per_us, streamed);
}

// Cuts the product into tasks. Each is worth waking a thread for, and they are a multiple of the threads if possible.
// Rows are cut as little as possible: each cut reads the weights once more.
static void share_product(Job *job, size_t threads) {
  float us = cost(job);
  size_t height = job->digits.height;
  job->row_blocks = ceil_div(job->digits.rows, height);
  job->block_units = ceil_div(job->weights->blocks, job->path->width);
  job->row_tasks = ceil_div(job->row_blocks, ceil_div(GROUP_ROWS, height));
  job->block_tasks = 1;
  if (threads <= 1 || us < WAKE_US) return;
  size_t rounds = us > 8 * WAKE_US * (float)threads ? 4 : 1;
  size_t wanted = at_most((size_t)(us / TASK_US), rounds * threads);
  if (wanted > job->row_tasks * job->block_units)
    job->row_tasks = at_most(ceil_div(wanted, job->block_units), job->row_blocks);
  size_t tasks = ceil_div(wanted, job->row_tasks);
  while (wanted >= threads && tasks * job->row_tasks % threads != 0 && tasks < job->block_units) tasks++;
  job->block_tasks = at_most(tasks, job->block_units);
}

static void share_digits(Job *job, size_t threads) {
  size_t rows = job->digits.rows;
  float us = (float)rows * (float)job->weights->inputs / DIGITS_PER_US;
  job->digit_tasks = us < WAKE_US ? 1 : at_most(at_most(threads, rows), (size_t)(us / TASK_US));
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
  share_product(&job, crew->threads);
  share_digits(&job, crew->threads);
  run(crew, job.digit_tasks, digits_task, &job);
  run(crew, job.row_tasks * job.block_tasks, product_task, &job);
  free(memory);
  return true;
}

bool int8_linear(const Int8Weights *weights, const float *x, size_t rows, float *y, const Crew *crew) {
  return int8_linear_by(path_for(rows), weights, x, rows, y, crew);
}
