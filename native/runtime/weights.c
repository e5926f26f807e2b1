// Packed weights by number. A graph names them in an attribute. JavaScript and each kernel that uses them hold a
// reference.
#include <stdlib.h>

#include "runtime/binding.h"

typedef struct Entry {
  int64_t number;
  LinearWeights *weights;
  size_t references;
  bool owned;  // whether one of them is that of the caller of weights_register
  struct Entry *next;
} Entry;

// Some hundred entries, looked up when sessions are made and closed.
static Entry *entries;
static int64_t last_number;
static Lock lock;

// The link to the entry with this number; to NULL = none has it.
static Entry **find(int64_t number) {
  Entry **link = &entries;
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  return link;
}

int64_t weights_register(LinearWeights *weights) {
  Entry *entry = malloc(sizeof *entry);
  if (entry == NULL) return 0;
  lock_take(&lock);
  int64_t number = ++last_number;
  *entry = (Entry){number, weights, 1, true, entries};
  entries = entry;
  lock_give(&lock);
  return number;
}

const LinearWeights *weights_acquire(int64_t number) {
  lock_take(&lock);
  Entry *entry = *find(number);
  if (entry != NULL) entry->references += 1;
  lock_give(&lock);
  return entry == NULL ? NULL : entry->weights;
}

// Takes a reference away: of the owner, if it still has one, or of a kernel.
static bool drop(int64_t number, bool of_owner) {
  lock_take(&lock);
  Entry **link = find(number);
  Entry *entry = *link;
  bool found = entry != NULL && (entry->owned || !of_owner);
  bool last = false;
  if (found) {
    if (of_owner) entry->owned = false;
    last = --entry->references == 0;
    if (last) *link = entry->next;
  }
  lock_give(&lock);
  if (last) {
    linear_weights_free(entry->weights);
    free(entry);
  }
  return found;
}

bool weights_release(int64_t number) { return drop(number, true); }

void weights_drop(int64_t number) { drop(number, false); }
