// Registers the custom operations (domain "flywheel") in a session, and reads and writes tensors for them.
#include "runtime/operations.h"

#include <stdlib.h>
#include <string.h>

#define DOMAIN "flywheel"

static const OperationKind *const kinds[] = {&int8_linear_operation, &int4_linear_operation, &rms_norm_operation, &gated_operation,
                                             &paged_attention_operation, &plain_attention_operation,
                                             &rotate_operation, &round_to_half_operation, &lora_add_operation,
                                             &lora_narrow_operation, &lora_widen_operation};
enum { KINDS = sizeof kinds / sizeof *kinds };

// The output lies in the memory of the first input, which nothing else may use.
static bool is_in_place(const OperationKind *kind) { return kind == &lora_add_operation; }

// `base` comes first: the runtime hands its address back.
typedef struct {
  OrtCustomOp base;
  const OperationKind *kind;
  Crew crew;
} Operation;

struct Operations {
  OrtCustomOpDomain *domain;
  Operation list[KINDS];
};

static const OperationKind *kind_of(const OrtCustomOp *op) { return ((const Operation *)op)->kind; }

static const char *get_name(const OrtCustomOp *op) { return kind_of(op)->name; }

static const char *get_provider(const OrtCustomOp *op) {
  (void)op;
  return NULL;
}

static int get_input_type(const OrtCustomOp *op, size_t index) {
  if (kind_of(op) == &paged_attention_operation && index == PAGED_CACHE) return ORT_ANY_TYPE;
  return index < kind_of(op)->floats ? ORT_FLOAT : ORT_INT64;
}

static size_t get_input_count(const OrtCustomOp *op) { return kind_of(op)->floats + kind_of(op)->integers; }

static int get_output_type(const OrtCustomOp *op, size_t index) {
  (void)op, (void)index;
  return ORT_FLOAT;
}

static size_t get_output_count(const OrtCustomOp *op) { return kind_of(op)->outputs; }

static int get_input_characteristic(const OrtCustomOp *op, size_t index) {
  return index < get_input_count(op) - kind_of(op)->optional ? ORT_REQUIRED : ORT_OPTIONAL;
}

static int get_output_characteristic(const OrtCustomOp *op, size_t index) {
  (void)op;
  return index == 0 ? ORT_REQUIRED : ORT_OPTIONAL;
}

static int get_input_memory_type(const OrtCustomOp *op, size_t index) {
  (void)op, (void)index;
  return ORT_MEMORY_DEFAULT;
}

// Output 0 is input 0.
static size_t get_first(int **input, int **output) {
  static int first[1];
  *input = *output = first;
  return 1;
}

static void release_first(int *input, int *output) { (void)input, (void)output; }

static OrtStatus *create_kernel(const OrtCustomOp *op, OrtApi api, const OrtKernelInfo *info, void **kernel) {
  (void)api;
  return kind_of(op)->create(info, ((const Operation *)op)->crew, kernel);
}

static Operation operation_of(const OperationKind *kind, Crew crew) {
  OrtCustomOp base = {
      .version = ORT_API_VERSION,
      .GetName = get_name,
      .GetExecutionProviderType = get_provider,
      .GetInputType = get_input_type,
      .GetInputTypeCount = get_input_count,
      .GetOutputType = get_output_type,
      .GetOutputTypeCount = get_output_count,
      .KernelDestroy = kind->destroy,
      .GetInputCharacteristic = get_input_characteristic,
      .GetOutputCharacteristic = get_output_characteristic,
      .GetInputMemoryType = get_input_memory_type,
      .CreateKernelV2 = create_kernel,
      .KernelComputeV2 = kind->compute,
  };
  if (is_in_place(kind)) {
    base.GetAliasMap = get_first;
    base.ReleaseAliasMap = release_first;
  }
  return (Operation){base, kind, crew};
}

OrtStatus *operations_create(Crew crew, OrtSessionOptions *options, Operations **operations) {
  *operations = calloc(1, sizeof **operations);
  if (*operations == NULL) return ort_failure("out of memory");
  ORT_TRY(ORT(CreateCustomOpDomain)(DOMAIN, &(*operations)->domain));
  for (size_t i = 0; i < KINDS; i++) {
    (*operations)->list[i] = operation_of(kinds[i], crew);
    ORT_TRY(ORT(CustomOpDomain_Add)((*operations)->domain, &(*operations)->list[i].base));
  }
  return ORT(AddCustomOpDomain)(options, (*operations)->domain);
}

void operations_release(Operations *operations) {
  if (operations != NULL && operations->domain != NULL) ORT(ReleaseCustomOpDomain)(operations->domain);
  free(operations);
}

OrtStatus *keep_kernel(const void *kernel, size_t bytes, void **kept) {
  *kept = malloc(bytes);
  if (*kept == NULL) return ort_failure("out of memory");
  memcpy(*kept, kernel, bytes);
  return NULL;
}

OrtStatus *keep_crew(const OrtKernelInfo *info, Crew crew, void **kernel) {
  (void)info;
  return keep_kernel(&crew, sizeof crew, kernel);
}

bool has_size(const OrtKernelInfo *info, const char *name) {
  int64_t value;
  OrtStatus *absent = ORT(KernelInfoGetAttribute_int64)(info, name, &value);
  if (absent != NULL) ORT(ReleaseStatus)(absent);
  return absent == NULL;
}

OrtStatus *read_size(const OrtKernelInfo *info, const char *name, Range range, size_t *size) {
  int64_t value;
  ORT_TRY(ORT(KernelInfoGetAttribute_int64)(info, name, &value));
  if (value < range.least || value > range.most) return ort_failure(range.otherwise);
  *size = (size_t)value;
  return NULL;
}

// Stands for the memory of tensors without elements.
static int64_t nothing[1];

OrtStatus *read_input(const OrtKernelContext *context, size_t index, Input *input) {
  *input = (Input){0};
  const OrtValue *value = NULL;
  ORT_TRY(ORT(KernelContext_GetInput)(context, index, &value));
  if (value == NULL) return NULL;
  ORT_TRY(ORT(GetTensorElementTypeAndShapeDataReference)(value, &input->type, &input->dims, &input->rank));
  ORT_TRY(ORT(GetTensorMutableData)((OrtValue *)value, &input->data));
  if (input->data == NULL) input->data = nothing;
  input->elements = 1;
  for (size_t i = 0; i < input->rank; i++) input->elements *= (size_t)input->dims[i];
  return NULL;
}

OrtStatus *make_output(OrtKernelContext *context, size_t index, const int64_t *dims, size_t rank, float **data) {
  OrtValue *value = NULL;
  size_t count;
  *data = NULL;
  ORT_TRY(ORT(KernelContext_GetOutputCount)(context, &count));
  if (index >= count) return NULL;
  ORT_TRY(ORT(KernelContext_GetOutput)(context, index, dims, rank, &value));
  return value == NULL ? NULL : ORT(GetTensorMutableData)(value, (void **)data);
}

// Waking 15 threads of the runtime takes some 20 microseconds.
static const float RUNTIME_TASK_US = 6;

static void run_by_runtime(void *pool, size_t count, void (*task)(void *data, size_t index), void *data) {
  Threads *threads = pool;
  if (threads->failure == NULL) {
    threads->failure = ORT(KernelContext_ParallelFor)(threads->context, task, count, 0, data);
  }
}

void threads_start(Threads *threads, Crew crew, const OrtKernelContext *context) {
  if (crew.run == NULL) crew = (Crew){crew.threads, RUNTIME_TASK_US, run_by_runtime, threads};
  *threads = (Threads){crew, context, NULL};
}

OrtStatus *threads_end(Threads *threads, bool done, const char *message) {
  if (threads->failure != NULL) return threads->failure;
  return done ? NULL : ort_failure(message);
}
