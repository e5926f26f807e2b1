// Rounding of many numbers: shares them among threads.
#include "rows/half.h"

// Numbers that one thread rounds, roughly.
enum { ROUNDED_PER_US = 4000 };
// Numbers that are rounded at a time.
enum { PIECE = 256 };

typedef struct {
  const float *x;
  float *y;
  size_t count, tasks;
} Job;

static void round_task(void *data, size_t index) {
  const Job *job = data;
  const size_t end = (index + 1) * job->count / job->tasks;
  uint16_t halves[PIECE];
  for (size_t i = index * job->count / job->tasks; i < end; i += PIECE) {
    const size_t count = end - i < PIECE ? end - i : PIECE;
    halves_narrow(job->x + i, count, halves);
    halves_widen(halves, count, job->y + i);
  }
}

void halves_round(const float *x, size_t count, float *y, const Crew *crew) {
  Job job = {x, y, count, crew_tasks(crew, (float)count / ROUNDED_PER_US, crew->threads)};
  crew_do(crew, job.tasks, round_task, &job);
}
