// Threads that share a kernel's work.
#ifndef FLYWHEEL_CREW_H
#define FLYWHEEL_CREW_H

#include <sched.h>
#include <stddef.h>

// `run` calls task(data, i) once for every i < count, on any thread and in any order, and returns when all are done.
// The calling thread does its part.
typedef struct {
  size_t threads;  // the calling thread included
  float task_us;   // microseconds of work that are worth a task of their own: `run` itself takes about as long
  void (*run)(void *pool, size_t count, void (*task)(void *data, size_t index), void *data);
  void *pool;
} Crew;

// In how many tasks to cut `us` microseconds of work: 1 to `most`.
size_t crew_tasks(const Crew *crew, float us, size_t most);
// `run`, if there is more than one task.
void crew_do(const Crew *crew, size_t count, void (*task)(void *data, size_t index), void *data);

// A crew with threads of its own, for one caller at a time. They wait in a busy loop for `spin_us` microseconds after
// their last task before they sleep. Where the system has no more threads, the crew is smaller.
Crew crew_of(size_t threads, size_t spin_us);
void crew_end(Crew crew);

// For loops that wait for another thread.
static inline void pause_briefly(size_t turn) {
  if (turn > 2000) sched_yield();
#if defined(__x86_64__)
  else __builtin_ia32_pause();
#elif defined(__aarch64__)
  else __asm__ volatile("yield");
#endif
}

#endif
