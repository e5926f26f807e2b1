// RmsNorm: x [.., n], weight [n] -> [.., n]. Attribute `epsilon`.
// Gated: gate and up [.., n], of as many numbers, or one [.., 2 * n], whose rows are gate, then up -> [.., n]. Attribute
// `activation`: an Activation.
// All float32.
#include <stdlib.h>
#include <string.h>

#include "rows/elementwise.h"
#include "runtime/operations.h"

typedef struct {
  float epsilon;
  Activation activation;
  Crew crew;
} ElementwiseKernel;

static OrtStatus *create_norm(const OrtKernelInfo *info, Crew crew, void **kernel) {
  ElementwiseKernel made = {.crew = crew};
  ORT_TRY(ORT(KernelInfoGetAttribute_float)(info, "epsilon", &made.epsilon));
  return keep_kernel(&made, sizeof made, kernel);
}

static OrtStatus *create_gated(const OrtKernelInfo *info, Crew crew, void **kernel) {
  ElementwiseKernel made = {.crew = crew};
  int64_t activation;
  ORT_TRY(ORT(KernelInfoGetAttribute_int64)(info, "activation", &activation));
  if (activation != SILU && activation != GELU_TANH) return ort_failure("Gated: unknown activation");
  made.activation = (Activation)activation;
  return keep_kernel(&made, sizeof made, kernel);
}

// The last dimension; 0 = none.
static size_t width_of(const Input *x) { return x->rank >= 1 ? (size_t)x->dims[x->rank - 1] : 0; }

static OrtStatus *compute_norm(void *kernel, OrtKernelContext *context) {
  const ElementwiseKernel *norm = kernel;
  Input x, weight;
  ORT_TRY(read_input(context, 0, &x));
  ORT_TRY(read_input(context, 1, &weight));
  size_t n = width_of(&x);
  if (x.rank < 1 || weight.elements != n) return ort_failure("RmsNorm: the weight has another length than the rows");
  float *y;
  ORT_TRY(make_output(context, 0, x.dims, x.rank, &y));
  if (x.elements == 0) return NULL;
  Threads threads;
  threads_start(&threads, norm->crew, context);
  rms_norm(x.data, weight.data, x.elements / n, n, norm->epsilon, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

static OrtStatus *compute_gated(void *kernel, OrtKernelContext *context) {
  const ElementwiseKernel *operation = kernel;
  Input gate, up;
  ORT_TRY(read_input(context, 0, &gate));
  ORT_TRY(read_input(context, 1, &up));
  const bool joined = up.data == NULL;
  const size_t width = width_of(&gate), n = joined ? width / 2 : width;
  if (gate.rank < 1 || gate.rank > MAX_RANK || (joined && width % 2 != 0) ||
      (!joined && (up.elements != gate.elements || width_of(&up) != n)))
    return ort_failure("Gated: gate and up have other sizes");
  int64_t dims[MAX_RANK];
  memcpy(dims, gate.dims, gate.rank * sizeof *dims);
  dims[gate.rank - 1] = (int64_t)n;
  float *y;
  ORT_TRY(make_output(context, 0, dims, gate.rank, &y));
  if (gate.elements == 0) return NULL;
  const float *second = joined ? (const float *)gate.data + n : up.data;
  Threads threads;
  threads_start(&threads, operation->crew, context);
  gated(gate.data, second, width, gate.elements / width, n, operation->activation, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

const OperationKind rms_norm_operation = {"RmsNorm", 2, 0, 0, 1, create_norm, compute_norm, free};
const OperationKind gated_operation = {"Gated", 2, 0, 1, 1, create_gated, compute_gated, free};
