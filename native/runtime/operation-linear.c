// Int8Linear and Int4Linear: x [.., inputs], or [.., 2 * inputs] if gated; norm weight [inputs], only for INPUT_RMS_NORM; residual (as
// many numbers as the result), optional; adapters, optional: factors [floats], begins int64 [rows], outputs of the map's
// parts int64 [parts] -> [.., outputs]; the rows as they are multiplied [.., inputs], optional, not for plain ones. All
// else float32. Attributes: `weights`, the number of packed weights; `input`, a LinearInput, default plain; `epsilon`,
// for INPUT_RMS_NORM; with adapters header, place and first_flag.
#include <stdlib.h>
#include <string.h>

#include "runtime/operations.h"

typedef struct {
  int64_t number;
  const LinearWeights *weights;
  LinearInput input;
  float epsilon;
  bool adapted;
  LoraMap map;  // of adapters, without its sizes
  Crew crew;
} LinearKernel;

// The attribute `input`; plain if it is absent.
static OrtStatus *read_kind(const OrtKernelInfo *info, LinearInput *input) {
  static const Range kinds = {INPUT_PLAIN, INPUT_GATED_GELU, "linear map: unknown kind of input"};
  size_t kind = INPUT_PLAIN;
  if (has_size(info, "input")) ORT_TRY(read_size(info, "input", kinds, &kind));
  *input = (LinearInput)kind;
  return NULL;
}

static OrtStatus *create(const OrtKernelInfo *info, Crew crew, void **kernel) {
  LinearKernel read = {.crew = crew};
  ORT_TRY(ORT(KernelInfoGetAttribute_int64)(info, "weights", &read.number));
  ORT_TRY(read_kind(info, &read.input));
  if (read.input == INPUT_RMS_NORM) ORT_TRY(ORT(KernelInfoGetAttribute_float)(info, "epsilon", &read.epsilon));
  read.adapted = has_size(info, "header");
  if (read.adapted) ORT_TRY(read_adapter_places(info, &read.map));
  LinearKernel *made = malloc(sizeof *made);
  if (made == NULL) return ort_failure("out of memory");
  *made = read;
  made->weights = weights_acquire(read.number);
  if (made->weights == NULL) {
    free(made);
    return ort_failure("linear map: no weights have this number");
  }
  *kernel = made;
  return NULL;
}

static void destroy(void *kernel) {
  weights_drop(((LinearKernel *)kernel)->number);
  free(kernel);
}

typedef struct {
  Input x, norm_weight, residual;
  size_t rows, outputs;
} LinearInputs;

static OrtStatus *read_inputs(const LinearKernel *linear, const OrtKernelContext *context, LinearInputs *in) {
  ORT_TRY(read_input(context, 0, &in->x));
  ORT_TRY(read_input(context, 1, &in->norm_weight));
  ORT_TRY(read_input(context, 2, &in->residual));
  size_t inputs = linear_weights_inputs(linear->weights);
  size_t width = linear->input == INPUT_GATED_SILU || linear->input == INPUT_GATED_GELU ? 2 * inputs : inputs;
  const Input *x = &in->x;
  if (x->rank < 1 || x->rank > MAX_RANK || x->dims[x->rank - 1] != (int64_t)width)
    return ort_failure("linear map: the input's last dimension is not that of the weights");
  in->rows = x->elements / width;
  in->outputs = linear_weights_outputs(linear->weights);
  if ((in->norm_weight.data != NULL) != (linear->input == INPUT_RMS_NORM))
    return ort_failure("linear map: a norm needs its weight, and nothing else does");
  if (in->norm_weight.data != NULL && in->norm_weight.elements != inputs)
    return ort_failure("linear map: the norm's weight has another length than the rows");
  if (in->residual.data != NULL && in->residual.elements != in->rows * in->outputs)
    return ort_failure("linear map: the residual has another size than the result");
  return NULL;
}

// An output like x, with another last dimension.
static OrtStatus *make_rows(OrtKernelContext *context, size_t index, const Input *x, size_t width, float **rows) {
  int64_t dims[MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = (int64_t)width;
  return make_output(context, index, dims, x->rank, rows);
}

// Whether any row has an adapter.
static OrtStatus *read_linear_adapters(const LinearKernel *linear, const OrtKernelContext *context,
                                       const LinearInputs *in, Adapters *adapters, bool *any) {
  static const AdapterInputs places = {.factors = 3, .begins = 4, .parts = 5};
  *any = false;
  if (!linear->adapted) return NULL;
  adapters->map = linear->map;
  adapters->map.inputs = linear_weights_inputs(linear->weights);
  ORT_TRY(read_adapters(context, places, in->rows, in->outputs, adapters));
  for (size_t row = 0; row < in->rows && !*any; row++) *any = adapters->begins[row] >= 0;
  return NULL;
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
  const LinearKernel *linear = kernel;
  LinearInputs in;
  ORT_TRY(read_inputs(linear, context, &in));
  float *y, *kept;
  ORT_TRY(make_rows(context, 0, &in.x, in.outputs, &y));
  ORT_TRY(make_rows(context, 1, &in.x, linear_weights_inputs(linear->weights), &kept));
  if (kept != NULL && linear->input == INPUT_PLAIN) return ort_failure("linear map: plain rows are not stored again");
  if (in.rows == 0) return NULL;
  LinearPrologue prologue = {linear->input, in.norm_weight.data, linear->epsilon, kept};
  Adapters adapters;
  bool adapted;
  ORT_TRY(read_linear_adapters(linear, context, &in, &adapters, &adapted));
  Threads threads;
  threads_start(&threads, linear->crew, context);
  bool done = linear_map(linear->weights, &prologue, in.x.data, in.rows, adapted ? &adapters : NULL,
                          in.residual.data, y, &threads.crew);
  return threads_end(&threads, done, "linear map: out of memory");
}

const OperationKind int8_linear_operation = {"Int8Linear", 4, 2, 5, 2, create, compute, destroy};
const OperationKind int4_linear_operation = {"Int4Linear", 4, 2, 5, 2, create, compute, destroy};
