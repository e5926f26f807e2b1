// Crews of all sizes do every task of every job once, awake or asleep. With "time" as argument: what a job costs.
#include "threads/crew.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_TASKS = 300 };

typedef struct {
  atomic_int done[MOST_TASKS];
  size_t count;
} Job;

static void do_task(void *data, size_t index) {
  Job *job = data;
  if (index >= job->count) abort();
  atomic_fetch_add_explicit(&job->done[index], 1, memory_order_relaxed);
}

static bool run_job(Crew crew, size_t count) {
  Job job = {.count = count};
  crew.run(crew.pool, count, do_task, &job);
  for (size_t i = 0; i < count; i++)
    if (atomic_load(&job.done[i]) != 1) return false;
  return true;
}

static void rest(long us) {
  nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static bool check_crew(size_t threads, size_t spin_us) {
  Crew crew = crew_of(threads, spin_us);
  bool ok = crew.threads == threads;
  unsigned random = 1;
  for (int i = 0; i < 3000 && ok; i++) {
    random = random * 1664525 + 1013904223;
    ok = run_job(crew, i % 7 == 0 ? (random >> 16) % MOST_TASKS : (random >> 16) % (threads + 3));
    if (i % 500 == 0) rest(2000);  // they sleep
    else if (i % 31 == 0) rest(random >> 25);
  }
  crew_end(crew);
  if (!ok) printf("  %zu threads, %zu us: a task was not done once\n", threads, spin_us);
  return ok;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void busy_task(void *data, size_t index) {
  (void)data, (void)index;
  for (double end = seconds() + 5e-6; seconds() < end;) continue;
}

static void time_crew(size_t threads) {
  enum { JOBS = 20000 };
  Crew crew = crew_of(threads, 200);
  for (int lap = 0; lap < 3; lap++) {
    double start = seconds();
    for (int i = 0; i < JOBS; i++) crew.run(crew.pool, threads, busy_task, NULL);
    printf("  %zu threads: %.2f us for tasks of 5\n", threads, (seconds() - start) / JOBS * 1e6);
  }
  crew_end(crew);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "time") == 0) {
    for (int i = 2; i < argc; i++) time_crew((size_t)atoi(argv[i]));
    return 0;
  }
  bool ok = true;
  for (size_t threads = 1; threads <= 16; threads += threads < 4 ? 1 : 4)
    for (size_t spin_us = 0; spin_us <= 200; spin_us += 100) ok = check_crew(threads, spin_us) && ok;
  return ok ? 0 : 1;
}
