// Int8Linear: x float32 [.., inputs] -> y float32 [.., outputs]. Attribute `weights`: the number of packed weights.
#include <stdlib.h>
#include <string.h>

#include "operations.h"

typedef struct {
  int64_t number;
  const Int8Weights *weights;
  size_t threads;
} LinearKernel;

static OrtStatus *create(const OrtKernelInfo *info, size_t threads, void **kernel) {
  int64_t number;
  ORT_TRY(ORT(KernelInfoGetAttribute_int64)(info, "weights", &number));
  LinearKernel *made = malloc(sizeof *made);
  if (made == NULL) return ort_failure("out of memory");
  *made = (LinearKernel){number, weights_acquire(number), threads};
  if (made->weights == NULL) {
    free(made);
    return ort_failure("Int8Linear: no weights have this number");
  }
  *kernel = made;
  return NULL;
}

static void destroy(void *kernel) {
  weights_drop(((LinearKernel *)kernel)->number);
  free(kernel);
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
  const LinearKernel *linear = kernel;
  int64_t inputs = (int64_t)int8_weights_inputs(linear->weights);
  Input x;
  ORT_TRY(read_input(context, 0, &x));
  int64_t dims[MAX_RANK];
  if (x.rank < 1 || x.rank > MAX_RANK || x.dims[x.rank - 1] != inputs) {
    return ort_failure("Int8Linear: the input's last dimension is not that of the weights");
  }
  memcpy(dims, x.dims, x.rank * sizeof *dims);
  dims[x.rank - 1] = (int64_t)int8_weights_outputs(linear->weights);
  float *y;
  ORT_TRY(make_output(context, dims, x.rank, &y));
  size_t rows = x.elements / (size_t)inputs;
  if (rows == 0) return NULL;
  Threads threads;
  threads_start(&threads, linear->threads, context);
  bool done = int8_linear(linear->weights, x.data, rows, y, &threads.crew);
  return threads_end(&threads, done, "Int8Linear: out of memory");
}

const OperationKind int8_linear_operation = {"Int8Linear", 1, 0, 0, create, compute, destroy};
