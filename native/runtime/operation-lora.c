// LoraAdd: y [rows, .., outputs], x [rows, .., inputs], factors [floats], residual (as many numbers as y), optional,
// begins int64 [rows], outputs of the map's parts int64 [parts] -> like y, in the memory of y. Attributes: header, place,
// first_flag. adapters/lora.h says what they mean.
//
// For the trainer, which needs both halves: LoraNarrow: x [rows, inputs], a [inputs, columns] -> [rows, columns].
// LoraWiden: t [rows, columns], b [columns, outputs] -> [rows, outputs].
#include <stdlib.h>
#include <string.h>

#include "runtime/operations.h"

typedef struct {
  LoraMap map;  // without its sizes
  Crew crew;
} AddKernel;

static OrtStatus *create_add(const OrtKernelInfo *info, Crew crew, void **kernel) {
  AddKernel made = {.crew = crew};
  ORT_TRY(read_adapter_places(info, &made.map));
  return keep_kernel(&made, sizeof made, kernel);
}

typedef struct {
  Input y, x, residual;
  size_t rows, outputs;
} AddInputs;

static OrtStatus *read_add(const OrtKernelContext *context, AddInputs *in, Adapters *adapters) {
  static const AdapterInputs places = {.factors = 2, .begins = 4, .parts = 5};
  ORT_TRY(read_input(context, 0, &in->y));
  ORT_TRY(read_input(context, 1, &in->x));
  ORT_TRY(read_input(context, 3, &in->residual));
  if (in->y.rank < 1 || in->x.rank < 1) return ort_failure("LoraAdd: x and y have no rows");
  in->rows = (size_t)in->y.dims[0];
  in->outputs = in->rows == 0 ? 0 : in->y.elements / in->rows;
  adapters->map.inputs = (size_t)in->x.dims[in->x.rank - 1];
  if (in->x.elements != in->rows * adapters->map.inputs) return ort_failure("LoraAdd: x has other rows than y");
  if (in->residual.data != NULL && in->residual.elements != in->y.elements) {
    return ort_failure("LoraAdd: the residual has another size than y");
  }
  return in->rows == 0 ? NULL : read_adapters(context, places, in->rows, in->outputs, adapters);
}

static OrtStatus *compute_add(void *kernel, OrtKernelContext *context) {
  const AddKernel *add = kernel;
  Adapters adapters = {.map = add->map};
  AddInputs in;
  ORT_TRY(read_add(context, &in, &adapters));
  float *y;
  ORT_TRY(make_output(context, 0, in.y.dims, in.y.rank, &y));
  if (in.rows == 0) return NULL;
  if (y != in.y.data) memcpy(y, in.y.data, in.y.elements * sizeof *y);
  Threads threads;
  threads_start(&threads, add->crew, context);
  bool done = lora_add(&adapters, in.x.data, in.rows, in.residual.data, y, &threads.crew);
  return threads_end(&threads, done, "LoraAdd: out of memory");
}

// One half: x [rows, .., inputs] times a matrix [inputs, outputs].
typedef bool (*Multiply)(const float *x, size_t rows, size_t inputs, const float *matrix, size_t outputs, float *y,
                         const Crew *crew);

static OrtStatus *compute_half(void *kernel, OrtKernelContext *context, Multiply multiply) {
  Input x, matrix;
  ORT_TRY(read_input(context, 0, &x));
  ORT_TRY(read_input(context, 1, &matrix));
  if (x.rank < 1 || matrix.rank != 2) return ort_failure("LoraNarrow or LoraWiden: an input is not a matrix");
  size_t rows = (size_t)x.dims[0], inputs = (size_t)matrix.dims[0], outputs = (size_t)matrix.dims[1];
  if (x.elements != rows * inputs) return ort_failure("LoraNarrow or LoraWiden: the factor has other inputs than x");
  int64_t dims[] = {(int64_t)rows, (int64_t)outputs};
  float *y;
  ORT_TRY(make_output(context, 0, dims, 2, &y));
  Threads threads;
  threads_start(&threads, *(const Crew *)kernel, context);
  bool done = multiply(x.data, rows, inputs, matrix.data, outputs, y, &threads.crew);
  return threads_end(&threads, done, "LoraNarrow or LoraWiden: out of memory");
}

static OrtStatus *compute_narrow(void *kernel, OrtKernelContext *context) {
  return compute_half(kernel, context, lora_narrow);
}

static OrtStatus *compute_widen(void *kernel, OrtKernelContext *context) {
  return compute_half(kernel, context, lora_widen);
}

// All after x may be absent to the runtime, because the residual may; read_adapters wants the others.
const OperationKind lora_add_operation = {"LoraAdd", 4, 2, 4, 1, create_add, compute_add, free};
const OperationKind lora_narrow_operation = {"LoraNarrow", 2, 0, 0, 1, keep_crew, compute_narrow, free};
const OperationKind lora_widen_operation = {"LoraWiden", 2, 0, 0, 1, keep_crew, compute_widen, free};
