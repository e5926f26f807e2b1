// Threads for tests. As in ONNX Runtime's pool, a thread first takes the tasks of its own share, which are the same in
// every run, and then what others have not begun: so what a thread reads tends to be in its cache.
#ifndef FLYWHEEL_TEST_CREW_H
#define FLYWHEEL_TEST_CREW_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { MAX_THREADS = 64, MAX_TASKS = 4096 };

typedef struct Pool Pool;

typedef struct {
  Pool *pool;
  size_t index;
  pthread_t id;
} Worker;

struct Pool {
  size_t threads;
  void (*task)(void *data, size_t index);
  void *data;
  size_t count;
  _Alignas(64) atomic_size_t working;
  _Alignas(64) atomic_size_t turn;
  _Alignas(64) atomic_size_t taken[MAX_TASKS];  // in which turn
  Worker workers[MAX_THREADS];
};

static void work(Pool *pool, size_t index, size_t turn) {
  size_t first = index * pool->count / pool->threads;
  for (size_t i = 0; i < pool->count; i++) {
    size_t task = (first + i) % pool->count, seen = atomic_load(&pool->taken[task]);
    if (seen != turn && atomic_compare_exchange_strong(&pool->taken[task], &seen, turn)) pool->task(pool->data, task);
  }
}

static void wait_a_little(int spins) {
  if (spins > 100000) sched_yield();
#if defined(__x86_64__)
  else __builtin_ia32_pause();
#endif
}

static void *worker(void *data) {
  Worker *self = data;
  Pool *pool = self->pool;
  for (size_t seen = 0;;) {
    for (int spins = 0; atomic_load(&pool->turn) == seen; spins++) wait_a_little(spins);
    seen = atomic_load(&pool->turn);
    if (pool->task == NULL) return NULL;
    work(pool, self->index, seen);
    atomic_fetch_sub(&pool->working, 1);
  }
}

static void pool_run(void *data, size_t count, void (*task)(void *data, size_t index), void *task_data) {
  Pool *pool = data;
  if (count > MAX_TASKS) abort();
  pool->task = task;
  pool->data = task_data;
  pool->count = count;
  atomic_store(&pool->working, pool->threads - 1);
  size_t turn = atomic_fetch_add(&pool->turn, 1) + 1;
  if (task == NULL) return;
  work(pool, 0, turn);
  for (int spins = 0; atomic_load(&pool->working) != 0; spins++) wait_a_little(spins);
}

static Crew crew_of(size_t threads) {
  Pool *pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
  memset(pool, 0, sizeof *pool);
  pool->threads = threads;
  for (size_t i = 1; i < threads; i++) {
    pool->workers[i] = (Worker){.pool = pool, .index = i};
    pthread_create(&pool->workers[i].id, NULL, worker, &pool->workers[i]);
  }
  return (Crew){threads, pool_run, pool};
}

static void crew_end(Crew crew) {
  Pool *pool = crew.pool;
  pool_run(pool, 0, NULL, NULL);
  for (size_t i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].id, NULL);
  free(pool);
}

#endif
