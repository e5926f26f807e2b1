// A crew with threads of its own. Each thread first takes the tasks of its own share, which are the same in every run,
// and then what others have not begun: so what a thread reads tends to be in its cache, and a late thread holds up
// nobody.
//
// A job is published by one number, its turn and count. A task is taken by raising the number of its share, which holds
// the turn too. So a thread that comes late, to a job that is over, finds nothing to take, and whoever has taken a task
// may read the job's fields: the job cannot end before that task.

#include "threads/crew.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// These moved between libraries in glibc 2.34. The old names work with the versions before and after it.
#ifdef __x86_64__
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5\n.symver pthread_join, pthread_join@GLIBC_2.2.5");
#else
__asm__(".symver pthread_create, pthread_create@GLIBC_2.17\n.symver pthread_join, pthread_join@GLIBC_2.17");
#endif

enum { SPINS_PER_LOOK = 64 };  // at the clock
static const float TASK_US = 2;

// Two numbers of 32 bits that change together: a turn, and a count or a place.
typedef _Atomic uint64_t Pair;
static uint64_t pair(uint32_t turn, size_t number) { return (uint64_t)turn << 32 | (uint32_t)number; }
static uint32_t turn_of(uint64_t pair) { return (uint32_t)(pair >> 32); }
static size_t number_of(uint64_t pair) { return (uint32_t)pair; }

typedef struct Pool Pool;

// A thread and its share of the tasks. The first is the caller's.
typedef struct {
  _Alignas(64) Pair next;  // the task to take
  Pool *pool;
  size_t index;
  pthread_t id;
} Member;

struct Pool {
  _Alignas(64) Pair job;
  void (*task)(void *data, size_t index);
  void *data;
  atomic_bool ended;
  _Alignas(64) atomic_size_t done;  // tasks
  _Alignas(64) _Atomic uint32_t sleepers;
  _Atomic uint32_t wakings;
  size_t threads, spin_us;
  Member members[];
};

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

// Takes a task of a share. False = none is left.
static bool take(Member *member, uint64_t job, size_t *task) {
  size_t index = member->index, threads = member->pool->threads, count = number_of(job);
  size_t first = index * count / threads, end = (index + 1) * count / threads;
  uint64_t next = atomic_load_explicit(&member->next, memory_order_acquire);
  do {
    bool begun = turn_of(next) == turn_of(job);
    if (!begun && atomic_load_explicit(&member->pool->job, memory_order_relaxed) != job) return false;
    *task = begun ? number_of(next) : first;
    if (*task >= end) return false;
  } while (!atomic_compare_exchange_weak_explicit(&member->next, &next, pair(turn_of(job), *task + 1),
                                                  memory_order_acq_rel, memory_order_acquire));
  return true;
}

static void work(Pool *pool, size_t index, uint64_t job) {
  for (size_t i = 0; i < pool->threads; i++) {
    Member *member = &pool->members[(index + i) % pool->threads];
    size_t done = 0, task;
    for (; take(member, job, &task); done++) pool->task(pool->data, task);
    if (done > 0) atomic_fetch_add_explicit(&pool->done, done, memory_order_release);
  }
}

static uint64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_until_next(Pool *pool, uint64_t seen) {
  atomic_fetch_add(&pool->sleepers, 1);
  uint32_t wakings = atomic_load(&pool->wakings);
  if (atomic_load(&pool->job) == seen) futex(&pool->wakings, FUTEX_WAIT, wakings);
  atomic_fetch_sub(&pool->sleepers, 1);
}

// The job after `seen`.
static uint64_t wait_for_next(Pool *pool, uint64_t seen) {
  uint64_t job, end = 0;
  for (size_t spins = 1; (job = atomic_load_explicit(&pool->job, memory_order_acquire)) == seen; spins++) {
    if (spins % SPINS_PER_LOOK != 0) {
      pause_briefly(0);
      continue;
    }
    uint64_t now = microseconds();
    if (end == 0) end = now + pool->spin_us;
    if (now >= end) sleep_until_next(pool, seen);
  }
  return job;
}

static void *live(void *data) {
  Member *self = data;
  Pool *pool = self->pool;
  for (uint64_t seen = 0;;) {
    seen = wait_for_next(pool, seen);
    if (atomic_load_explicit(&pool->ended, memory_order_relaxed)) return NULL;
    work(pool, self->index, seen);
  }
}

static uint64_t publish(Pool *pool, size_t count) {
  uint64_t job = pair(turn_of(atomic_load_explicit(&pool->job, memory_order_relaxed)) + 1, count);
  atomic_store(&pool->job, job);
  if (atomic_load(&pool->sleepers) > 0) {
    atomic_fetch_add(&pool->wakings, 1);
    futex(&pool->wakings, FUTEX_WAKE, INT_MAX);
  }
  return job;
}

static void run_shared(void *data, size_t count, void (*task)(void *data, size_t index), void *task_data) {
  Pool *pool = data;
  pool->task = task;
  pool->data = task_data;
  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
  work(pool, 0, publish(pool, count));
  for (size_t turn = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < count; turn++) pause_briefly(turn);
}

static void run_alone(void *pool, size_t count, void (*task)(void *data, size_t index), void *data) {
  (void)pool;
  for (size_t i = 0; i < count; i++) task(data, i);
}

size_t crew_tasks(const Crew *crew, float us, size_t most) {
  float tasks = us / crew->task_us;
  return crew->threads == 1 || tasks < 2 ? 1 : tasks < (float)most ? (size_t)tasks : most;
}

void crew_do(const Crew *crew, size_t count, void (*task)(void *data, size_t index), void *data) {
  if (count == 1) task(data, 0);
  else crew->run(crew->pool, count, task, data);
}

static Pool *make_pool(size_t threads, size_t spin_us) {
  size_t bytes = sizeof(Pool) + threads * sizeof(Member);
  Pool *pool = aligned_alloc(64, bytes);
  if (pool == NULL) return NULL;
  memset(pool, 0, bytes);
  pool->spin_us = spin_us;
  pool->threads = threads;
  return pool;
}

Crew crew_of(size_t threads, size_t spin_us) {
  Pool *pool = threads > 1 ? make_pool(threads, spin_us) : NULL;
  if (pool == NULL) return (Crew){1, TASK_US, run_alone, NULL};
  size_t started = 0;
  for (; started < threads; started++) {
    Member *member = &pool->members[started];
    member->pool = pool;
    member->index = started;
    if (started > 0 && pthread_create(&member->id, NULL, live, member) != 0) break;
  }
  pool->threads = started;  // before the first job; until then nobody reads it
  return (Crew){started, TASK_US, run_shared, pool};
}

void crew_end(Crew crew) {
  Pool *pool = crew.pool;
  if (pool == NULL) return;
  atomic_store_explicit(&pool->ended, true, memory_order_relaxed);
  publish(pool, 0);
  for (size_t i = 1; i < pool->threads; i++) pthread_join(pool->members[i].id, NULL);
  free(pool);
}
