// LoraNarrow: x [rows, .., inputs], a [inputs, columns], mask [rows, columns] (optional) -> [rows, columns].
// LoraWiden: t [rows, columns], b [columns, outputs] -> [rows, outputs].
// All float32.
#include <stdlib.h>

#include "lora.h"
#include "operations.h"

typedef struct {
  size_t threads;
} LoraKernel;

static OrtStatus *create(const OrtKernelInfo *info, size_t threads, void **kernel) {
  (void)info;
  LoraKernel *made = malloc(sizeof *made);
  if (made == NULL) return ort_failure("out of memory");
  made->threads = threads;
  *kernel = made;
  return NULL;
}

static bool is_matrix(const Input *x, size_t rows, size_t columns) {
  return x->rank == 2 && (size_t)x->dims[0] == rows && (size_t)x->dims[1] == columns;
}

static OrtStatus *compute_narrow(void *kernel, OrtKernelContext *context) {
  Input x, a, mask;
  ORT_TRY(read_input(context, 0, &x));
  ORT_TRY(read_input(context, 1, &a));
  ORT_TRY(read_input(context, 2, &mask));
  if (x.rank < 1 || a.rank != 2) return ort_failure("LoraNarrow: x or A is not a matrix");
  size_t rows = (size_t)x.dims[0], inputs = (size_t)a.dims[0], columns = (size_t)a.dims[1];
  if (x.elements != rows * inputs) return ort_failure("LoraNarrow: A has other inputs than x");
  if (mask.data != NULL && !is_matrix(&mask, rows, columns)) return ort_failure("LoraNarrow: the mask does not fit");
  int64_t dims[] = {(int64_t)rows, (int64_t)columns};
  float *y;
  ORT_TRY(make_output(context, dims, 2, &y));
  if (rows == 0 || columns == 0) return NULL;
  Threads threads;
  threads_start(&threads, ((const LoraKernel *)kernel)->threads, context);
  lora_narrow(x.data, rows, inputs, a.data, columns, mask.data, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

static OrtStatus *compute_widen(void *kernel, OrtKernelContext *context) {
  Input t, b;
  ORT_TRY(read_input(context, 0, &t));
  ORT_TRY(read_input(context, 1, &b));
  if (t.rank != 2 || b.rank != 2 || t.dims[1] != b.dims[0]) return ort_failure("LoraWiden: t and B do not fit");
  size_t rows = (size_t)t.dims[0], columns = (size_t)t.dims[1], outputs = (size_t)b.dims[1];
  int64_t dims[] = {(int64_t)rows, (int64_t)outputs};
  float *y;
  ORT_TRY(make_output(context, dims, 2, &y));
  if (rows == 0 || outputs == 0) return NULL;
  Threads threads;
  threads_start(&threads, ((const LoraKernel *)kernel)->threads, context);
  lora_widen(t.data, rows, columns, b.data, outputs, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

const OperationKind lora_narrow_operation = {"LoraNarrow", 3, 0, 1, create, compute_narrow, free};
const OperationKind lora_widen_operation = {"LoraWiden", 2, 0, 0, create, compute_widen, free};
