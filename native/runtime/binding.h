// What the files of the binding share: sessions of ONNX Runtime (runtime/runtime.c), the custom operations in them
// (runtime/operations.c), and the weights that those use (runtime/weights.c). node/module.c offers it to JavaScript.
#ifndef FLYWHEEL_BINDING_H
#define FLYWHEEL_BINDING_H

#include "kernels.h"
#include "runtime/ort.h"

// --- spin lock for short, rare sections ---

typedef struct {
  _Atomic int taken;
} Lock;

void lock_take(Lock *lock);
void lock_give(Lock *lock);

// --- runtime/runtime.c ---

// Loads libonnxruntime.so.1 and makes the process's environment. Further calls do nothing. Any thread.
// NULL = success, else what went wrong.
const char *runtime_open(const char *library_path);

enum { MAX_RANK = 8 };

// One input or output of a session. What the caller sets for a run: `state`, and for GIVEN: type, rank, dims, data and
// bytes. What the run sets for ALLOCATED outputs: the same fields. Their data is the session's until session_finish.
// KEPT inputs are given once, by session_keep.
typedef struct {
  char *name;
  enum { UNUSED, GIVEN, ALLOCATED, KEPT } state;
  int type;
  size_t rank;
  int64_t dims[MAX_RANK];
  void *data;
  size_t bytes;
  OrtValue *value;
} Port;

typedef struct {
  OrtSession *ort;
  struct Operations *operations;
  Crew crew;  // without `run`: the runtime's threads
  size_t input_count, output_count;
  Port *ports;  // inputs, then outputs
  // For the call of the runtime, input_count + output_count each.
  const char **names;
  OrtValue **values;
} Session;

typedef struct {
  const void *model;
  size_t model_bytes;
  size_t threads;
  bool own_threads;  // share the operations of the module, and the runtime's own have one thread
  size_t spin_us;    // of own threads
  // Configuration entries: key, value, key, value ..
  char **config;
  size_t config_count;
  // Contents of the files that the model refers to. The runtime copies them.
  char **file_names;
  char **file_contents;
  size_t *file_lengths;
  size_t file_count;
} SessionRequest;

OrtStatus *session_create(const SessionRequest *request, Session **session);
void session_release(Session *session);
// Keeps the inputs that are GIVEN for all later runs. Their data must outlive the session.
OrtStatus *session_keep(Session *session);
// Runs the session with what its ports say.
OrtStatus *session_run(Session *session);
// Frees what the last run made.
void session_finish(Session *session);
// Bytes of one element; 0 = a type that is not supported.
size_t element_bytes(int type);

// --- runtime/operations.c ---

// The operations of one session. They and their crew must outlive it. A crew without `run` stands for the runtime's
// threads.
typedef struct Operations Operations;
OrtStatus *operations_create(Crew crew, OrtSessionOptions *options, Operations **operations);
void operations_release(Operations *operations);

// --- runtime/weights.c: packed weights, known to graphs by number ---

// A number above 0 for weights, which the table frees when nobody refers to them. 0 = out of memory.
int64_t weights_register(LinearWeights *weights);
// Ends the reference of whoever registered the weights. False = it has none.
bool weights_release(int64_t number);
// A kernel's reference. NULL = no such number.
const LinearWeights *weights_acquire(int64_t number);
void weights_drop(int64_t number);

#endif
