// Rotation of many rows: shares them among threads.
#include "rotary.h"

// Numbers that make a task worth waking a thread for: some 8 microseconds of work.
enum { LEAST_TASK = 32768 };

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
  Job job = {x, cos, sin, y, rows, heads, head_dim, turned, 1};
  const size_t tasks = rows * heads * head_dim / LEAST_TASK, most = crew->threads < rows ? crew->threads : rows;
  job.tasks = tasks < most ? tasks : most;
  if (job.tasks < 2) job.tasks = 1;
  if (job.tasks == 1) {
    rotate_task(&job, 0);
  } else {
    crew->run(crew->pool, job.tasks, rotate_task, &job);
  }
}
