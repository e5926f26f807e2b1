// The attention operations. Attributes of both: heads, kv_heads, head_dim, block (ints), scale, softcap (floats), as in
// AttentionShape.
//
// PagedAttention, with the attribute window: qk [rows, ..] (each row begins with its query heads, then its key heads),
// qkv [rows, ..] (each row ends with its value heads; may be qk), cos and sin [rows, turned / 2] (both optional: how
// queries and keys are still to be rotated), cache [blocks, numbers of a block] (float32 or float16), spans int64
// [m, 4] (first row, count, start, where the list of its blocks begins in the next input), blocks int64 [n], wanted rows
// int64 [w] (optional) -> [w or rows, 1, heads * head_dim].
// The cache is an input that is written to, in the caller's memory.
//
// PlainAttention: q [count, heads * head_dim], k and v [keys, kv_heads * head_dim], window int64 [1]
// -> [count, heads * head_dim].
#include <stdlib.h>

#include "runtime/operations.h"

typedef struct {
  AttentionShape shape;
  Crew crew;
} AttentionKernel;

#define TOO_LARGE "attention: out of memory, or heads or blocks are too large"

// Products of three sizes up to this one fit into 64 bits.
enum { LARGEST = 1 << 20 };
static const Range sizes = {1, LARGEST, "attention: a size is out of range"};
static const Range window_sizes = {0, LARGEST, "attention: the window is out of range"};

static OrtStatus *read_shape(const OrtKernelInfo *info, AttentionShape *shape) {
  ORT_TRY(read_size(info, "heads", sizes, &shape->heads));
  ORT_TRY(read_size(info, "kv_heads", sizes, &shape->kv_heads));
  ORT_TRY(read_size(info, "head_dim", sizes, &shape->head_dim));
  ORT_TRY(read_size(info, "block", sizes, &shape->block));
  ORT_TRY(ORT(KernelInfoGetAttribute_float)(info, "scale", &shape->scale));
  ORT_TRY(ORT(KernelInfoGetAttribute_float)(info, "softcap", &shape->softcap));
  return shape->heads % shape->kv_heads == 0 ? NULL : ort_failure("attention: kv_heads does not divide heads");
}

static OrtStatus *create_paged(const OrtKernelInfo *info, Crew crew, void **kernel) {
  AttentionKernel made = {.crew = crew};
  ORT_TRY(read_shape(info, &made.shape));
  ORT_TRY(read_size(info, "window", window_sizes, &made.shape.window));
  return keep_kernel(&made, sizeof made, kernel);
}

static OrtStatus *create_plain(const OrtKernelInfo *info, Crew crew, void **kernel) {
  AttentionKernel made = {.crew = crew};
  ORT_TRY(read_shape(info, &made.shape));
  return keep_kernel(&made, sizeof made, kernel);
}

// Whether x has this many rows of this many elements.
static bool has_rows(const Input *x, size_t rows, size_t width) {
  return x->rank >= 1 && (size_t)x->dims[0] == rows && x->elements % width == 0 && x->elements / width == rows;
}

static size_t rows_of(const Input *x) { return x->rank >= 1 ? (size_t)x->dims[0] : 0; }

typedef struct {
  Input qk, qkv, cos, sin, cache, spans, blocks, wanted;
  size_t rows;
  Heads heads;
} PagedInputs;

// Where the heads are, or what is wrong with them.
static const char *find_heads(const AttentionShape *shape, PagedInputs *in) {
  if (in->qk.rank < 1 || in->qkv.rank < 1 || in->qk.dims[0] != in->qkv.dims[0]) {
    return "PagedAttention: qk and qkv do not have the same rows";
  }
  in->rows = rows_of(&in->qk);
  in->heads = (Heads){.qk = in->qk.data, .cos = in->cos.data, .sin = in->sin.data};
  bool none = in->cos.data == NULL && in->sin.data == NULL;
  if (!none && !read_turned(&in->cos, &in->sin, in->rows, shape->head_dim, &in->heads.turned)) {
    return "PagedAttention: cos and sin do not fit the heads";
  }
  if (in->rows == 0) return NULL;
  in->heads.qk_stride = in->qk.elements / in->rows;
  in->heads.v_stride = in->qkv.elements / in->rows;
  size_t value_floats = shape->kv_heads * shape->head_dim;
  if (in->heads.qk_stride < shape->heads * shape->head_dim + value_floats || in->heads.v_stride < value_floats) {
    return "PagedAttention: a row has too few heads";
  }
  in->heads.v = (const float *)in->qkv.data + in->heads.v_stride - value_floats;
  return NULL;
}

static OrtStatus *read_paged(const AttentionShape *shape, const OrtKernelContext *context, PagedInputs *in) {
  Input *inputs[] = {&in->qk, &in->qkv, &in->cos, &in->sin, &in->cache, &in->spans, &in->blocks, &in->wanted};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) ORT_TRY(read_input(context, i, inputs[i]));
  const char *problem = find_heads(shape, in);
  if (problem != NULL) return ort_failure(problem);
  if (!has_rows(&in->cache, rows_of(&in->cache), attention_block_elements(shape))) {
    return ort_failure("PagedAttention: the cache has blocks of another size");
  }
  if (in->cache.type != ORT_FLOAT && in->cache.type != ORT_FLOAT16) {
    return ort_failure("PagedAttention: the cache is neither float32 nor float16");
  }
  if (!has_rows(&in->spans, rows_of(&in->spans), 4)) return ort_failure("PagedAttention: a span is not four numbers");
  const int64_t *wanted = in->wanted.data;
  for (size_t i = 0; i < in->wanted.elements; i++) {
    if (wanted[i] < 0 || (size_t)wanted[i] >= in->rows) return ort_failure("PagedAttention: no such wanted row");
  }
  return NULL;
}

// Whether the four numbers are rows that exist, and positions whose blocks are listed and exist.
static bool read_span(const AttentionShape *shape, const PagedInputs *in, const int64_t *numbers, Span *span) {
  int64_t rows = (int64_t)in->rows, listed = (int64_t)in->blocks.elements, block = (int64_t)shape->block;
  int64_t first_row = numbers[0], count = numbers[1], start = numbers[2], offset = numbers[3];
  if (first_row < 0 || count < 0 || first_row > rows || count > rows - first_row) return false;
  if (offset < 0 || offset > listed || start < 0 || start > listed * block) return false;
  int64_t needed = (start + count + block - 1) / block;
  if (needed > listed - offset) return false;
  *span = (Span){first_row, count, start, (const int64_t *)in->blocks.data + offset};
  for (int64_t i = 0; i < needed; i++) {
    if (span->blocks[i] < 0 || span->blocks[i] >= (int64_t)rows_of(&in->cache)) return false;
  }
  return true;
}

static OrtStatus *attend(const AttentionKernel *kernel, const PagedInputs *in, Span *spans, OrtKernelContext *context) {
  AttentionShape with_type = kernel->shape;
  with_type.half = in->cache.type == ORT_FLOAT16;
  const AttentionShape *shape = &with_type;
  size_t span_count = 0;
  for (size_t i = 0; i < rows_of(&in->spans); i++) {
    Span *span = &spans[span_count];
    if (!read_span(shape, in, (const int64_t *)in->spans.data + 4 * i, span)) {
      return ort_failure("PagedAttention: a span has rows or blocks that do not exist");
    }
    if (span->count > 0) span_count += 1;
  }
  size_t results = in->wanted.data == NULL ? in->rows : in->wanted.elements;
  int64_t dims[] = {(int64_t)results, 1, (int64_t)(shape->heads * shape->head_dim)};
  float *out;
  ORT_TRY(make_output(context, 0, dims, 3, &out));
  if (in->rows == 0) return NULL;
  Threads threads;
  threads_start(&threads, kernel->crew, context);
  bool done = attention_paged(shape, in->cache.data, spans, span_count, &in->heads, in->rows, in->wanted.data, results,
                              out, &threads.crew);
  return threads_end(&threads, done, TOO_LARGE);
}

static OrtStatus *compute_paged(void *kernel, OrtKernelContext *context) {
  const AttentionKernel *attention = kernel;
  PagedInputs in;
  ORT_TRY(read_paged(&attention->shape, context, &in));
  Span *spans = malloc((rows_of(&in.spans) + 1) * sizeof *spans);
  if (spans == NULL) return ort_failure("out of memory");
  OrtStatus *failure = attend(attention, &in, spans, context);
  free(spans);
  return failure;
}

static OrtStatus *compute_plain(void *kernel, OrtKernelContext *context) {
  const AttentionKernel *attention = kernel;
  AttentionShape shape = attention->shape;
  Input q, k, v, window;
  ORT_TRY(read_input(context, 0, &q));
  ORT_TRY(read_input(context, 1, &k));
  ORT_TRY(read_input(context, 2, &v));
  ORT_TRY(read_input(context, 3, &window));
  if (window.elements != 1 || *(int64_t *)window.data < 0) return ort_failure("PlainAttention: wrong window");
  shape.window = (size_t)*(int64_t *)window.data;
  size_t count = rows_of(&q), keys = rows_of(&k);
  size_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  if (!has_rows(&q, count, width) || !has_rows(&k, keys, kv_width) || !has_rows(&v, keys, kv_width) || count > keys) {
    return ort_failure("PlainAttention: the rows of q, k and v do not fit together");
  }
  int64_t dims[] = {(int64_t)count, (int64_t)width};
  float *out;
  ORT_TRY(make_output(context, 0, dims, 2, &out));
  if (count == 0) return NULL;
  Threads threads;
  threads_start(&threads, attention->crew, context);
  bool done = attention_plain(&shape, q.data, k.data, v.data, count, keys, out, &threads.crew);
  return threads_end(&threads, done, TOO_LARGE);
}

// All after qkv may be absent to the runtime, because cos and sin may; read_paged wants the others.
const OperationKind paged_attention_operation = {"PagedAttention", 5, 3, 6, 1, create_paged, compute_paged, free};
const OperationKind plain_attention_operation = {"PlainAttention", 3, 1, 0, 1, create_plain, compute_plain, free};
