// Rotation of many rows: shares them among threads.
#include "rows/rotary.h"

#include "sizes.h"

// Numbers that one thread rotates, roughly.
enum { ROTATED_PER_US = 4000 };

typedef struct {
  const float *x, *cos, *sin;
  float *y;
  size_t rows, heads, head_dim, turned, tasks;
} Job;

static void rotate_task(void *data, size_t index) {
  const Job *job = data;
  const size_t half = job->turned / 2, end = (index + 1) * job->rows / job->tasks;
  for (size_t row = index * job->rows / job->tasks; row < end; row++) {
    for (size_t head = row * job->heads; head < (row + 1) * job->heads; head++) {
      rotate_row(job->x + head * job->head_dim, job->head_dim, job->cos + row * half, job->sin + row * half,
                 job->turned, job->y + head * job->head_dim);
    }
  }
}

void rotate(const float *x, size_t rows, size_t heads, size_t head_dim, const float *cos, const float *sin,
            size_t turned, float *y, const Crew *crew) {
  const float us = (float)(rows * heads * head_dim) / ROTATED_PER_US;
  const size_t tasks = crew_tasks(crew, us, at_most(rows, crew->threads));
  Job job = {x, cos, sin, y, rows, heads, head_dim, turned, tasks};
  crew_do(crew, tasks, rotate_task, &job);
}
