// Rotate: x [n, .., head_dim], cos and sin [n, turned / 2] -> like x. The first `turned` numbers of every head of a row
// are rotated (rows/rotary.h). All float32.
#include <stdlib.h>

#include "runtime/operations.h"
#include "rows/rotary.h"

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
  Input x, cos, sin;
  ORT_TRY(read_input(context, 0, &x));
  ORT_TRY(read_input(context, 1, &cos));
  ORT_TRY(read_input(context, 2, &sin));
  if (x.rank < 2) return ort_failure("Rotate: the input has no rows of heads");
  size_t head_dim = (size_t)x.dims[x.rank - 1], turned;
  if (!read_turned(&cos, &sin, (size_t)x.dims[0], head_dim, &turned)) {
    return ort_failure("Rotate: cos and sin do not fit the heads");
  }
  float *y;
  ORT_TRY(make_output(context, 0, x.dims, x.rank, &y));
  if (x.elements == 0) return NULL;
  size_t rows = (size_t)x.dims[0];
  Threads threads;
  threads_start(&threads, *(const Crew *)kernel, context);
  rotate(x.data, rows, x.elements / rows / head_dim, head_dim, cos.data, sin.data, turned, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

bool read_turned(const Input *cos, const Input *sin, size_t rows, size_t head_dim, size_t *turned) {
  if (cos->rank != 2 || sin->rank != 2 || (size_t)cos->dims[0] != rows || (size_t)sin->dims[0] != rows) return false;
  *turned = 2 * (size_t)cos->dims[1];
  return cos->dims[1] == sin->dims[1] && *turned <= head_dim;
}

const OperationKind rotate_operation = {"Rotate", 3, 0, 0, 1, keep_crew, compute, free};
