// RoundToHalf: x -> like x, each number as two bytes would hold it (rows/half.h). Both float32. Training sees keys and values
// as a cache of float16 holds them.
#include <stdlib.h>

#include "rows/half.h"
#include "runtime/operations.h"

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
  Input x;
  ORT_TRY(read_input(context, 0, &x));
  float *y;
  ORT_TRY(make_output(context, 0, x.dims, x.rank, &y));
  if (x.elements == 0) return NULL;
  Threads threads;
  threads_start(&threads, *(const Crew *)kernel, context);
  halves_round(x.data, x.elements, y, &threads.crew);
  return threads_end(&threads, true, NULL);
}

const OperationKind round_to_half_operation = {"RoundToHalf", 1, 0, 0, 1, keep_crew, compute, free};
