// The part of ONNX Runtime's C API that the module uses. The runtime hands out a table of functions that only ever
// grows, so a function is known by its place in the table, and asking for an old version keeps newer runtimes usable.
#ifndef FLYWHEEL_ORT_H
#define FLYWHEEL_ORT_H

#include <stddef.h>
#include <stdint.h>

// The oldest version of the table with all functions below, that of ONNX Runtime 1.24.
enum { ORT_API_VERSION = 24 };

typedef void (*const *OrtApi)(void);
typedef struct OrtStatus OrtStatus;  // NULL = success
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtCustomOp OrtCustomOp;

typedef struct {
  OrtApi (*GetApi)(uint32_t version);  // NULL = this runtime is older
  const char *(*GetVersionString)(void);
} OrtApiBase;

// Element types of tensors, numbered as in ONNX files.
enum { ORT_FLOAT = 1, ORT_UINT8 = 2, ORT_INT8 = 3, ORT_INT32 = 6, ORT_INT64 = 7, ORT_BOOL = 9, ORT_FLOAT16 = 10 };
enum { ORT_ANY_TYPE = 0 };  // of a custom operation's input
enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2 };
enum { ORT_LOG_WARNING = 2, ORT_LOG_ERROR = 3 };
enum { ORT_SEQUENTIAL = 0, ORT_OPTIMIZE_ALL = 99 };
enum { ORT_DEVICE_ALLOCATOR = 0, ORT_MEMORY_DEFAULT = 0 };
enum { ORT_REQUIRED = 0, ORT_OPTIONAL = 1 };

// A function's place in the table and its type. Call it with ORT(name)(...).
#define ORT_FUNCTION(place, result, name, ...) \
  enum { ort_place_##name = place };           \
  typedef result (*ort_type_##name)(__VA_ARGS__);
#define ORT(name) ((ort_type_##name)ort_api[ort_place_##name])

ORT_FUNCTION(0, OrtStatus *, CreateStatus, int code, const char *message)
ORT_FUNCTION(2, const char *, GetErrorMessage, const OrtStatus *)
ORT_FUNCTION(3, OrtStatus *, CreateEnv, int log_severity, const char *log_id, OrtEnv **)
ORT_FUNCTION(8, OrtStatus *, CreateSessionFromArray, const OrtEnv *, const void *model, size_t model_bytes,
             const OrtSessionOptions *, OrtSession **)
ORT_FUNCTION(9, OrtStatus *, Run, OrtSession *, const OrtRunOptions *, const char *const *input_names,
             const OrtValue *const *inputs, size_t input_count, const char *const *output_names, size_t output_count,
             OrtValue **outputs)
ORT_FUNCTION(10, OrtStatus *, CreateSessionOptions, OrtSessionOptions **)
ORT_FUNCTION(13, OrtStatus *, SetSessionExecutionMode, OrtSessionOptions *, int mode)
ORT_FUNCTION(17, OrtStatus *, DisableMemPattern, OrtSessionOptions *)
ORT_FUNCTION(22, OrtStatus *, SetSessionLogSeverityLevel, OrtSessionOptions *, int severity)
ORT_FUNCTION(23, OrtStatus *, SetSessionGraphOptimizationLevel, OrtSessionOptions *, int level)
ORT_FUNCTION(24, OrtStatus *, SetIntraOpNumThreads, OrtSessionOptions *, int threads)
ORT_FUNCTION(25, OrtStatus *, SetInterOpNumThreads, OrtSessionOptions *, int threads)
ORT_FUNCTION(26, OrtStatus *, CreateCustomOpDomain, const char *domain, OrtCustomOpDomain **)
ORT_FUNCTION(27, OrtStatus *, CustomOpDomain_Add, OrtCustomOpDomain *, const OrtCustomOp *)
ORT_FUNCTION(28, OrtStatus *, AddCustomOpDomain, OrtSessionOptions *, OrtCustomOpDomain *)
ORT_FUNCTION(30, OrtStatus *, SessionGetInputCount, const OrtSession *, size_t *)
ORT_FUNCTION(31, OrtStatus *, SessionGetOutputCount, const OrtSession *, size_t *)
ORT_FUNCTION(36, OrtStatus *, SessionGetInputName, const OrtSession *, size_t index, OrtAllocator *, char **)
ORT_FUNCTION(37, OrtStatus *, SessionGetOutputName, const OrtSession *, size_t index, OrtAllocator *, char **)
ORT_FUNCTION(49, OrtStatus *, CreateTensorWithDataAsOrtValue, const OrtMemoryInfo *, void *data, size_t bytes,
             const int64_t *dims, size_t rank, int type, OrtValue **)
ORT_FUNCTION(51, OrtStatus *, GetTensorMutableData, OrtValue *, void **)
ORT_FUNCTION(69, OrtStatus *, CreateCpuMemoryInfo, int allocator_type, int memory_type, OrtMemoryInfo **)
ORT_FUNCTION(76, OrtStatus *, AllocatorFree, OrtAllocator *, void *)
ORT_FUNCTION(78, OrtStatus *, GetAllocatorWithDefaultOptions, OrtAllocator **)  // never freed
ORT_FUNCTION(85, OrtStatus *, KernelInfoGetAttribute_float, const OrtKernelInfo *, const char *name, float *)
ORT_FUNCTION(86, OrtStatus *, KernelInfoGetAttribute_int64, const OrtKernelInfo *, const char *name, int64_t *)
ORT_FUNCTION(89, OrtStatus *, KernelContext_GetOutputCount, const OrtKernelContext *, size_t *)
ORT_FUNCTION(90, OrtStatus *, KernelContext_GetInput, const OrtKernelContext *, size_t index, const OrtValue **)
ORT_FUNCTION(91, OrtStatus *, KernelContext_GetOutput, OrtKernelContext *, size_t index, const int64_t *dims,
             size_t rank, OrtValue **)
ORT_FUNCTION(93, void, ReleaseStatus, OrtStatus *)
ORT_FUNCTION(95, void, ReleaseSession, OrtSession *)
ORT_FUNCTION(96, void, ReleaseValue, OrtValue *)
ORT_FUNCTION(100, void, ReleaseSessionOptions, OrtSessionOptions *)
ORT_FUNCTION(101, void, ReleaseCustomOpDomain, OrtCustomOpDomain *)
ORT_FUNCTION(130, OrtStatus *, AddSessionConfigEntry, OrtSessionOptions *, const char *key, const char *value)
ORT_FUNCTION(274, OrtStatus *, KernelContext_ParallelFor, const OrtKernelContext *,
             void (*task)(void *data, size_t index), size_t count, size_t batches, void *data)
ORT_FUNCTION(279, OrtStatus *, AddExternalInitializersFromFilesInMemory, OrtSessionOptions *, const char *const *names,
             char *const *contents, const size_t *lengths, size_t count)
// `dims` stays the value's memory.
ORT_FUNCTION(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, const OrtValue *, int *type,
             const int64_t **dims, size_t *rank)

// What the runtime calls to learn about a custom operation, to make its kernels and to run them.
struct OrtCustomOp {
  uint32_t version;  // ORT_API_VERSION
  void *(*CreateKernel)(const OrtCustomOp *, OrtApi, const OrtKernelInfo *);
  const char *(*GetName)(const OrtCustomOp *);
  const char *(*GetExecutionProviderType)(const OrtCustomOp *);  // NULL = the CPU's
  int (*GetInputType)(const OrtCustomOp *, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp *);
  int (*GetOutputType)(const OrtCustomOp *, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp *);
  void (*KernelCompute)(void *kernel, OrtKernelContext *);
  void (*KernelDestroy)(void *kernel);
  int (*GetInputCharacteristic)(const OrtCustomOp *, size_t index);
  int (*GetOutputCharacteristic)(const OrtCustomOp *, size_t index);
  int (*GetInputMemoryType)(const OrtCustomOp *, size_t index);
  int (*GetVariadicInputMinArity)(const OrtCustomOp *);
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp *);
  int (*GetVariadicOutputMinArity)(const OrtCustomOp *);
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *);
  OrtStatus *(*CreateKernelV2)(const OrtCustomOp *, OrtApi, const OrtKernelInfo *, void **kernel);
  OrtStatus *(*KernelComputeV2)(void *kernel, OrtKernelContext *);
  OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *, void *);
  int (*GetStartVersion)(const OrtCustomOp *);
  int (*GetEndVersion)(const OrtCustomOp *);
  size_t (*GetMayInplace)(int **input, int **output);
  void (*ReleaseMayInplace)(int *input, int *output);
  size_t (*GetAliasMap)(int **input, int **output);
  void (*ReleaseAliasMap)(int *input, int *output);
};

// The table, once runtime/runtime.c has opened the library.
extern OrtApi ort_api;

// Returns from the calling function with the failure of `call`, if it fails.
#define ORT_TRY(call)                   \
  do {                                  \
    OrtStatus *failure = (call);        \
    if (failure != NULL) return failure; \
  } while (0)

static inline OrtStatus *ort_failure(const char *message) { return ORT(CreateStatus)(ORT_FAIL, message); }

#endif
