// Elementwise operations on many rows: shares the rows among threads.
#include "rows/elementwise.h"

#include "sizes.h"

// Rough costs.
enum {
  NORM_PER_US = 4000,   // numbers that one thread normalizes
  GATED_PER_US = 1500,  // and activates
};

typedef struct {
  const float *first, *second;  // x and weight, or gate and up
  float *y;
  size_t rows, n, stride, tasks;
  float epsilon;
  Activation activation;
} Job;

static void norm_task(void *data, size_t index) {
  const Job *job = data;
  for (size_t row = index * job->rows / job->tasks; row < (index + 1) * job->rows / job->tasks; row++)
    rms_norm_row(job->first + row * job->n, job->second, job->n, job->epsilon, job->y + row * job->n);
}

static void gated_task(void *data, size_t index) {
  const Job *job = data;
  for (size_t row = index * job->rows / job->tasks; row < (index + 1) * job->rows / job->tasks; row++)
    gated_row(job->first + row * job->stride, job->second + row * job->stride, job->n, job->activation,
              job->y + row * job->n);
}

static void share(Job *job, size_t per_us, void (*task)(void *data, size_t index), const Crew *crew) {
  job->tasks = crew_tasks(crew, (float)(job->rows * job->n) / (float)per_us, at_most(job->rows, crew->threads));
  crew_do(crew, job->tasks, task, job);
}

void rms_norm(const float *x, const float *weight, size_t rows, size_t n, float epsilon, float *y, const Crew *crew) {
  Job job = {.first = x, .second = weight, .y = y, .rows = rows, .n = n, .epsilon = epsilon};
  share(&job, NORM_PER_US, norm_task, crew);
}

void gated(const float *gate, const float *up, size_t stride, size_t rows, size_t n, Activation activation, float *y,
           const Crew *crew) {
  Job job = {.first = gate, .second = up, .y = y, .rows = rows, .n = n, .stride = stride, .activation = activation};
  share(&job, GATED_PER_US, gated_task, crew);
}
