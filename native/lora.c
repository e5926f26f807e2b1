// Adapters on many rows: shares the rows among threads.
#include "lora.h"

enum {
  PRODUCTS_PER_US = 10000,  // of one thread, roughly
  TASK_US = 8,              // least work of a task
};

typedef struct {
  const float *rows_in, *factor, *mask;  // x and A, or t and B
  float *y;
  size_t rows, inputs, outputs, tasks;
} Job;

static void narrow_task(void *data, size_t index) {
  const Job *job = data;
  for (size_t row = index * job->rows / job->tasks; row < (index + 1) * job->rows / job->tasks; row++) {
    const float *mask = job->mask == NULL ? NULL : job->mask + row * job->outputs;
    lora_narrow_row(job->rows_in + row * job->inputs, job->inputs, job->factor, job->outputs, mask,
                    job->y + row * job->outputs);
  }
}

static void widen_task(void *data, size_t index) {
  const Job *job = data;
  for (size_t row = index * job->rows / job->tasks; row < (index + 1) * job->rows / job->tasks; row++) {
    lora_widen_row(job->rows_in + row * job->inputs, job->inputs, job->factor, job->outputs,
                   job->y + row * job->outputs);
  }
}

// `products`: of one row, at most.
static void share(Job *job, size_t products, void (*task)(void *data, size_t index), const Crew *crew) {
  size_t tasks = job->rows * products / (PRODUCTS_PER_US * TASK_US);
  if (tasks > crew->threads) tasks = crew->threads;
  if (tasks > job->rows) tasks = job->rows;
  job->tasks = tasks < 2 ? 1 : tasks;
  if (job->tasks == 1) task(job, 0);
  else crew->run(crew->pool, job->tasks, task, job);
}

void lora_narrow(const float *x, size_t rows, size_t inputs, const float *a, size_t columns, const float *mask,
                 float *y, const Crew *crew) {
  Job job = {.rows_in = x, .factor = a, .mask = mask, .y = y, .rows = rows, .inputs = inputs, .outputs = columns};
  share(&job, inputs * columns, narrow_task, crew);
}

void lora_widen(const float *t, size_t rows, size_t columns, const float *b, size_t outputs, float *y,
                const Crew *crew) {
  Job job = {.rows_in = t, .factor = b, .y = y, .rows = rows, .inputs = columns, .outputs = outputs};
  share(&job, columns * outputs, widen_task, crew);
}
