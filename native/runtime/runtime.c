// Sessions of ONNX Runtime: made from a model in memory, run with memory of the caller.
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/binding.h"

// These moved between libraries in glibc 2.34. The old names work with the versions before and after it.
#ifdef __x86_64__
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5\n.symver dlsym, dlsym@GLIBC_2.2.5\n.symver dlerror, dlerror@GLIBC_2.2.5");
#else
__asm__(".symver dlopen, dlopen@GLIBC_2.17\n.symver dlsym, dlsym@GLIBC_2.17\n.symver dlerror, dlerror@GLIBC_2.17");
#endif

OrtApi ort_api;

// Of the process, made once and never released: onnxruntime-node counts on the environment too.
static OrtEnv *environment;
static OrtMemoryInfo *cpu_memory;
static OrtAllocator *allocator;
static Lock opening;

void lock_take(Lock *lock) {
  while (atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0) sched_yield();
}

void lock_give(Lock *lock) { atomic_store_explicit(&lock->taken, 0, memory_order_release); }

static OrtStatus *make_environment(void) {
  ORT_TRY(ORT(GetAllocatorWithDefaultOptions)(&allocator));
  if (cpu_memory == NULL) ORT_TRY(ORT(CreateCpuMemoryInfo)(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &cpu_memory));
  return ORT(CreateEnv)(ORT_LOG_WARNING, "flywheel", &environment);
}

static const char *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  const OrtApiBase *(*get_base)(void) = (const OrtApiBase *(*)(void))dlsym(library, "OrtGetApiBase");
  if (get_base == NULL) return "this library is not ONNX Runtime";
  ort_api = get_base()->GetApi(ORT_API_VERSION);
  if (ort_api == NULL) return "this version of ONNX Runtime is too old";
  OrtStatus *failure = make_environment();
  if (failure == NULL) return NULL;
  const char *message = ORT(GetErrorMessage)(failure);
  ort_api = NULL;
  return message;
}

const char *runtime_open(const char *library_path) {
  lock_take(&opening);
  const char *failure = environment == NULL ? open_library(library_path) : NULL;
  lock_give(&opening);
  return failure;
}

size_t element_bytes(int type) {
  switch (type) {
    case ORT_UINT8:
    case ORT_INT8:
    case ORT_BOOL:
      return 1;
    case ORT_FLOAT16:
      return 2;
    case ORT_FLOAT:
    case ORT_INT32:
      return 4;
    case ORT_INT64:
      return 8;
    default:
      return 0;
  }
}

static OrtStatus *set_options(const SessionRequest *request, OrtSessionOptions *options) {
  ORT_TRY(ORT(SetIntraOpNumThreads)(options, request->own_threads ? 1 : (int)request->threads));
  ORT_TRY(ORT(SetInterOpNumThreads)(options, 1));
  ORT_TRY(ORT(SetSessionExecutionMode)(options, ORT_SEQUENTIAL));
  ORT_TRY(ORT(SetSessionGraphOptimizationLevel)(options, ORT_OPTIMIZE_ALL));
  ORT_TRY(ORT(DisableMemPattern)(options));
  ORT_TRY(ORT(SetSessionLogSeverityLevel)(options, ORT_LOG_ERROR));
  for (size_t i = 0; i + 1 < request->config_count; i += 2) {
    ORT_TRY(ORT(AddSessionConfigEntry)(options, request->config[i], request->config[i + 1]));
  }
  if (request->file_count == 0) return NULL;
  const char *const *names = (const char *const *)request->file_names;
  return ORT(AddExternalInitializersFromFilesInMemory)(options, names, request->file_contents, request->file_lengths,
                                                       request->file_count);
}

static OrtStatus *read_ports(Session *session) {
  ORT_TRY(ORT(SessionGetInputCount)(session->ort, &session->input_count));
  ORT_TRY(ORT(SessionGetOutputCount)(session->ort, &session->output_count));
  size_t count = session->input_count + session->output_count;
  session->ports = calloc(count, sizeof *session->ports);
  session->names = calloc(count, sizeof *session->names);
  session->values = calloc(count, sizeof *session->values);
  if (session->ports == NULL || session->names == NULL || session->values == NULL) return ort_failure("out of memory");
  for (size_t i = 0; i < session->input_count; i++) {
    ORT_TRY(ORT(SessionGetInputName)(session->ort, i, allocator, &session->ports[i].name));
  }
  for (size_t i = 0; i < session->output_count; i++) {
    Port *port = &session->ports[session->input_count + i];
    ORT_TRY(ORT(SessionGetOutputName)(session->ort, i, allocator, &port->name));
  }
  return NULL;
}

static OrtStatus *fill_session(const SessionRequest *request, OrtSessionOptions *options, Session *session) {
  ORT_TRY(set_options(request, options));
  bool own = request->own_threads || request->threads == 1;
  session->crew = own ? crew_of(request->threads, request->spin_us) : (Crew){.threads = request->threads};
  ORT_TRY(operations_create(session->crew, options, &session->operations));
  ORT_TRY(ORT(CreateSessionFromArray)(environment, request->model, request->model_bytes, options, &session->ort));
  return read_ports(session);
}

OrtStatus *session_create(const SessionRequest *request, Session **session) {
  *session = calloc(1, sizeof **session);
  if (*session == NULL) return ort_failure("out of memory");
  OrtSessionOptions *options = NULL;
  OrtStatus *failure = ORT(CreateSessionOptions)(&options);
  if (failure == NULL) failure = fill_session(request, options, *session);
  if (options != NULL) ORT(ReleaseSessionOptions)(options);
  if (failure != NULL) session_release(*session);
  return failure;
}

void session_release(Session *session) {
  for (size_t i = 0; session->ports != NULL && i < session->input_count; i++) {
    if (session->ports[i].state == KEPT) session->ports[i].state = GIVEN;
  }
  session_finish(session);
  for (size_t i = 0; session->ports != NULL && i < session->input_count + session->output_count; i++) {
    OrtStatus *failure = session->ports[i].name == NULL ? NULL : ORT(AllocatorFree)(allocator, session->ports[i].name);
    if (failure != NULL) ORT(ReleaseStatus)(failure);
  }
  if (session->ort != NULL) ORT(ReleaseSession)(session->ort);
  operations_release(session->operations);
  crew_end(session->crew);
  free(session->ports);
  free(session->names);
  free(session->values);
  free(session);
}

// The runtime accepts no missing memory, even for tensors without elements.
static char nothing[8];

static OrtStatus *wrap(Port *port) {
  void *data = port->data == NULL ? nothing : port->data;
  return ORT(CreateTensorWithDataAsOrtValue)(cpu_memory, data, port->bytes, port->dims, port->rank, port->type,
                                             &port->value);
}

OrtStatus *session_keep(Session *session) {
  for (size_t i = 0; i < session->input_count; i++) {
    Port *port = &session->ports[i];
    if (port->state != GIVEN) continue;
    ORT_TRY(wrap(port));
    port->state = KEPT;
  }
  return NULL;
}

// Lists the used ports among `count` for a call of the runtime. Returns how many they are.
static OrtStatus *list_ports(Port *ports, size_t count, const char **names, OrtValue **values, size_t *used) {
  *used = 0;
  for (size_t i = 0; i < count; i++) {
    if (ports[i].state == UNUSED) continue;
    if (ports[i].state == GIVEN) ORT_TRY(wrap(&ports[i]));
    names[*used] = ports[i].name;
    values[*used] = ports[i].value;
    *used += 1;
  }
  return NULL;
}

static OrtStatus *read_result(Port *port) {
  const int64_t *dims;
  ORT_TRY(ORT(GetTensorElementTypeAndShapeDataReference)(port->value, &port->type, &dims, &port->rank));
  ORT_TRY(ORT(GetTensorMutableData)(port->value, &port->data));
  if (port->rank > MAX_RANK) return ort_failure("an output has too many dimensions");
  port->bytes = element_bytes(port->type);
  if (port->bytes == 0) return ort_failure("an output has a type that is not supported");
  for (size_t i = 0; i < port->rank; i++) {
    port->dims[i] = dims[i];
    port->bytes *= (size_t)dims[i];
  }
  return NULL;
}

OrtStatus *session_run(Session *session) {
  Port *outputs = session->ports + session->input_count;
  const char **output_names = session->names + session->input_count;
  OrtValue **results = session->values + session->input_count;
  size_t inputs_used, outputs_used;
  ORT_TRY(list_ports(session->ports, session->input_count, session->names, session->values, &inputs_used));
  ORT_TRY(list_ports(outputs, session->output_count, output_names, results, &outputs_used));
  ORT_TRY(ORT(Run)(session->ort, NULL, session->names, (const OrtValue *const *)session->values, inputs_used,
                   output_names, outputs_used, results));
  size_t used = 0;
  for (size_t i = 0; i < session->output_count; i++) {
    if (outputs[i].state != UNUSED) outputs[i].value = results[used++];
  }
  for (size_t i = 0; i < session->output_count; i++) {
    if (outputs[i].state == ALLOCATED) ORT_TRY(read_result(&outputs[i]));
  }
  return NULL;
}

void session_finish(Session *session) {
  for (size_t i = 0; session->ports != NULL && i < session->input_count + session->output_count; i++) {
    Port *port = &session->ports[i];
    if (port->state == KEPT) continue;
    if (port->value != NULL) ORT(ReleaseValue)(port->value);
    port->value = NULL;
  }
}
