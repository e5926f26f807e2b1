// What the custom operations share.
#ifndef FLYWHEEL_OPERATIONS_H
#define FLYWHEEL_OPERATIONS_H

#include "runtime/binding.h"
#include "adapters/lora.h"

// A kind of operation. Inputs are `floats` float32 tensors, then `integers` int64 tensors, the last `optional` of which
// may be absent. Only the cache of PagedAttention may be of another type. Outputs are float32; those after the first may
// be absent.
typedef struct {
  const char *name;
  size_t floats, integers, optional, outputs;
  // Makes the kernel of a node, to be freed with `destroy`.
  OrtStatus *(*create)(const OrtKernelInfo *info, Crew crew, void **kernel);
  OrtStatus *(*compute)(void *kernel, OrtKernelContext *context);
  void (*destroy)(void *kernel);
} OperationKind;

extern const OperationKind int8_linear_operation, int4_linear_operation, rms_norm_operation, gated_operation, paged_attention_operation,
    plain_attention_operation, rotate_operation, round_to_half_operation, lora_add_operation, lora_narrow_operation,
    lora_widen_operation;

// A copy of a kernel, to be freed with `free`.
OrtStatus *keep_kernel(const void *kernel, size_t bytes, void **kept);
// `create` of operations without attributes: the kernel is the crew.
OrtStatus *keep_crew(const OrtKernelInfo *info, Crew crew, void **kernel);

// What an attribute may be, and the message if it is not.
typedef struct {
  int64_t least, most;
  const char *otherwise;
} Range;

// Whether a node has an attribute that is a whole number.
bool has_size(const OrtKernelInfo *info, const char *name);
OrtStatus *read_size(const OrtKernelInfo *info, const char *name, Range range, size_t *size);

// The place of PagedAttention's cache among its inputs.
enum { PAGED_CACHE = 4 };

typedef struct {
  void *data;  // NULL = absent
  int type;
  const int64_t *dims;
  size_t rank, elements;
} Input;

OrtStatus *read_input(const OrtKernelContext *context, size_t index, Input *input);
// How many numbers of a head cos and sin, [rows][turned / 2], rotate. False = they do not fit. (runtime/operation-rotate.c)
bool read_turned(const Input *cos, const Input *sin, size_t rows, size_t head_dim, size_t *turned);
// --- runtime/operation-adapters.c: a step's adapters at one map. adapters/lora.h says what the numbers mean ---

// Attributes header, place and first_flag.
OrtStatus *read_adapter_places(const OrtKernelInfo *info, LoraMap *map);

// Places of inputs: factors [floats], begins int64 [rows], outputs of the map's parts int64 [parts].
typedef struct {
  size_t factors, begins, parts;
} AdapterInputs;

// adapters->map comes with its places and inputs.
OrtStatus *read_adapters(const OrtKernelContext *context, AdapterInputs at, size_t rows, size_t outputs,
                         Adapters *adapters);

// Makes an output; NULL = it is absent.
OrtStatus *make_output(OrtKernelContext *context, size_t index, const int64_t *dims, size_t rank, float **data);

// The threads that run a node: the session's crew, or those of the runtime.
typedef struct {
  Crew crew;
  const OrtKernelContext *context;
  OrtStatus *failure;
} Threads;

void threads_start(Threads *threads, Crew crew, const OrtKernelContext *context);
// The result of a kernel that used them. `message`: why it was not done.
OrtStatus *threads_end(Threads *threads, bool done, const char *message);

#endif
