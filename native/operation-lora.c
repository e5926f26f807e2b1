// LoraAdd: y [rows, .., outputs], x [rows, .., inputs], factors [floats], residual (as many numbers as y), optional,
// begins int64 [rows], outputs of the map's parts int64 [parts] -> like y, in the memory of y. Attributes: header, place,
// first_flag. lora.h says what they mean.
//
// For the trainer, which needs both halves: LoraNarrow: x [rows, inputs], a [inputs, columns] -> [rows, columns].
// LoraWiden: t [rows, columns], b [columns, outputs] -> [rows, outputs].
#include <stdlib.h>
#include <string.h>

#include "lora.h"
#include "operations.h"

typedef struct {
  LoraMap map;  // without its sizes
  Crew crew;
} AddKernel;

// Products of sizes up to this one fit into 64 bits.
#define LARGEST ((int64_t)1 << 40)
static const Range sizes = {0, LARGEST, "LoraAdd: a size is out of range"};
enum { LARGEST_RANK = 1 << 20 };

static OrtStatus *create_add(const OrtKernelInfo *info, Crew crew, void **kernel) {
  AddKernel made = {.crew = crew};
  ORT_TRY(read_size(info, "header", sizes, &made.map.header));
  ORT_TRY(read_size(info, "place", sizes, &made.map.place));
  ORT_TRY(read_size(info, "first_flag", sizes, &made.map.first_flag));
  return keep_kernel(&made, sizeof made, kernel);
}

typedef struct {
  Input y, x, factors, residual, begins, parts;
  size_t rows;
} AddInputs;

// The sizes of the map, or what is wrong with the inputs.
static const char *find_sizes(AddInputs *in, LoraMap *map) {
  if (in->y.rank < 1 || in->x.rank < 1) return "LoraAdd: x and y have no rows";
  in->rows = (size_t)in->y.dims[0];
  map->inputs = (size_t)in->x.dims[in->x.rank - 1];
  map->part_count = in->parts.elements;
  map->part_outputs = in->parts.data;
  for (size_t i = 0; i < map->part_count; i++) {
    if (map->part_outputs[i] < 0) return "LoraAdd: a part has no outputs";
    map->outputs += (size_t)map->part_outputs[i];
  }
  if (in->y.elements != in->rows * map->outputs) return "LoraAdd: y has other outputs than the parts";
  if (in->x.elements != in->rows * map->inputs) return "LoraAdd: x has other rows than y";
  if (in->begins.elements != in->rows) return "LoraAdd: not every row has a place";
  if (in->residual.data != NULL && in->residual.elements != in->y.elements) {
    return "LoraAdd: the residual has another size than y";
  }
  return NULL;
}

// Whether all of an adapter that this map reads lies in the factors.
static bool fits(const LoraMap *map, const Input *factors, int64_t begin) {
  const size_t floats = factors->elements;
  if (begin < 0) return true;
  if ((size_t)begin > floats || floats - (size_t)begin < map->header) return false;
  if (map->header < LORA_FLAGS + map->first_flag + map->part_count) return false;
  const float rank = ((const float *)factors->data)[begin + LORA_RANK];
  if (!(rank >= 1 && rank <= LARGEST_RANK) || rank != (float)(size_t)rank) return false;
  const size_t needed = map->place + map->part_count * map->inputs + map->outputs;
  return (size_t)rank * needed <= floats - (size_t)begin - map->header;
}

static OrtStatus *read_add(const OrtKernelContext *context, AddInputs *in, LoraMap *map) {
  Input *inputs[] = {&in->y, &in->x, &in->factors, &in->residual, &in->begins, &in->parts};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) ORT_TRY(read_input(context, i, inputs[i]));
  const char *problem = find_sizes(in, map);
  if (problem != NULL) return ort_failure(problem);
  const int64_t *begins = in->begins.data;
  for (size_t row = 0; row < in->rows; row++) {
    if (row > 0 && begins[row] == begins[row - 1]) continue;
    if (!fits(map, &in->factors, begins[row])) return ort_failure("LoraAdd: a row has no adapter at its place");
  }
  return NULL;
}

static OrtStatus *compute_add(void *kernel, OrtKernelContext *context) {
  const AddKernel *add = kernel;
  LoraMap map = add->map;
  AddInputs in;
  ORT_TRY(read_add(context, &in, &map));
  float *y;
  ORT_TRY(make_output(context, 0, in.y.dims, in.y.rank, &y));
  if (y != in.y.data && in.y.elements > 0) memcpy(y, in.y.data, in.y.elements * sizeof *y);
  Threads threads;
  threads_start(&threads, add->crew, context);
  bool done = lora_add(&map, in.factors.data, in.begins.data, in.x.data, in.rows, in.residual.data, y, &threads.crew);
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

// All after x may be absent to the runtime, because the residual may; read_add wants the others.
const OperationKind lora_add_operation = {"LoraAdd", 4, 2, 4, 1, create_add, compute_add, free};
const OperationKind lora_narrow_operation = {"LoraNarrow", 2, 0, 0, 1, keep_crew, compute_narrow, free};
const OperationKind lora_widen_operation = {"LoraWiden", 2, 0, 0, 1, keep_crew, compute_widen, free};
