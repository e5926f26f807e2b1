// Attention against a slow reference in double precision, and its bits however it is called. With the argument `time`:
// how long one layer takes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "threads/crew.h"
#include "rows/half.h"
#include "need-vectors.h"
#include "random.h"
#include "rows/rotary.h"
#include "slow-half.h"

// --- Data ---

static float *random_floats(size_t count) {
  float *floats = malloc((count + 1) * sizeof(float));
  for (size_t i = 0; i < count; i++) floats[i] = 1.7f * random_number();
  return floats;
}

// A cache of nothing but NaN, and numbers of its blocks in random order.
typedef struct {
  void *numbers;
  int64_t *order;
  size_t used;
} Cache;
static Cache cache_new(const AttentionShape *shape, size_t blocks) {
  const size_t bytes = blocks * attention_block_elements(shape) * attention_element_bytes(shape);
  Cache cache = {malloc(bytes), malloc(blocks * sizeof(int64_t)), 0};
  memset(cache.numbers, 0xff, bytes);
  for (size_t i = 0; i < blocks; i++) cache.order[i] = (int64_t)i;
  for (size_t i = blocks; i > 1; i--) {
    const size_t j = random_bits() % i;
    const int64_t other = cache.order[j];
    cache.order[j] = cache.order[i - 1];
    cache.order[i - 1] = other;
  }
  return cache;
}
static const int64_t *cache_take(Cache *cache, const AttentionShape *shape, size_t positions) {
  const int64_t *blocks = cache->order + cache->used;
  cache->used += (positions + shape->block - 1) / shape->block;
  return blocks;
}
static void cache_free(Cache cache) {
  free(cache.numbers);
  free(cache.order);
}

// --- One sequence, as a whole and otherwise ---

typedef struct {
  AttentionShape shape;
  size_t length, q_row, kv_row;
  float *q, *k, *v, *out, *other;  // q and k rotated, k and v as the cache holds them
  Heads heads;                     // the same, not rotated yet, in the memory below
  float *qk_memory, *v_memory, *cos, *sin;
  bool failed;
} Sequence;

static void check(Sequence *s, bool good, const char *what) {
  if (good) return;
  s->failed = true;
  printf("  FAIL %s\n", what);
}

static void check_bits(Sequence *s, const char *what) {
  check(s, !memcmp(s->out, s->other, s->length * s->q_row * sizeof(float)), what);
  memset(s->other, 0x7f, s->length * s->q_row * sizeof(float));
}

// --- Where heads lie, and their rotation ---

// `packed`: values after keys in one row, as a linear map leaves them. Otherwise two tensors, with some numbers between
// keys and next queries, and before values.
static void lay_heads(Sequence *s, bool packed) {
  const size_t qk_row = s->q_row + s->kv_row;
  s->heads.qk_stride = qk_row + (packed ? s->kv_row : 5);
  s->heads.v_stride = packed ? s->heads.qk_stride : s->kv_row + 3;
  s->heads.qk = s->qk_memory = random_floats(s->length * s->heads.qk_stride);
  s->v_memory = packed ? NULL : random_floats(s->length * s->heads.v_stride);
  float *v = packed ? s->qk_memory + qk_row : s->v_memory + 3;
  s->heads.v = v;
  // Too large for two bytes.
  for (size_t row = 3; s->shape.half && row < s->length; row += 50) {
    v[row * s->heads.v_stride] = row % 100 == 3 ? 1e6f : -INFINITY;
  }
}

static void rotate_slowly(const Sequence *s, const float *x, size_t row, float *y) {
  const size_t half = s->heads.turned / 2;
  memcpy(y, x, s->shape.head_dim * sizeof(float));
  for (size_t i = 0; i < half; i++) {
    const float cos = s->cos[row * half + i], sin = s->sin[row * half + i];
    y[i] = fmaf(-x[i + half], sin, x[i] * cos);
    y[i + half] = fmaf(x[i], sin, x[i + half] * cos);
  }
}

static void rotate_heads(Sequence *s) {
  const size_t half = s->heads.turned / 2, dim = s->shape.head_dim;
  s->cos = random_floats(s->length * half);
  s->sin = random_floats(s->length * half);
  for (size_t i = 0; i < s->length * half; i++) s->cos[i] *= 0.7f, s->sin[i] *= 0.7f;
  if (half) s->heads.cos = s->cos, s->heads.sin = s->sin;
  s->q = malloc(s->length * s->q_row * sizeof(float));
  s->k = malloc(s->length * s->kv_row * sizeof(float));
  s->v = malloc(s->length * s->kv_row * sizeof(float));
  for (size_t row = 0; row < s->length; row++) {
    const float *q = s->heads.qk + row * s->heads.qk_stride, *k = q + s->q_row;
    for (size_t i = 0; i < s->q_row; i += dim) rotate_slowly(s, q + i, row, s->q + row * s->q_row + i);
    for (size_t i = 0; i < s->kv_row; i += dim) rotate_slowly(s, k + i, row, s->k + row * s->kv_row + i);
    memcpy(s->v + row * s->kv_row, s->heads.v + row * s->heads.v_stride, s->kv_row * sizeof(float));
  }
  for (size_t i = 0; s->shape.half && i < s->length * s->kv_row; i++) {
    s->k[i] = slow_half(s->k[i]);
    s->v[i] = slow_half(s->v[i]);
  }
}

// The rotation by itself gives the same bits.
static void check_rotation(Sequence *s, Crew crew) {
  const AttentionShape *shape = &s->shape;
  const size_t bytes = s->q_row * sizeof(float), floats = s->length * s->q_row;
  float *x = malloc(s->length * bytes), *y = malloc((floats + 1) * sizeof(float));
  for (size_t row = 0; row < s->length; row++) {
    memcpy(x + row * s->q_row, s->heads.qk + row * s->heads.qk_stride, bytes);
  }
  y[floats] = 7;
  rotate(x, s->length, shape->heads, shape->head_dim, s->cos, s->sin, s->heads.turned, y, &crew);
  check(s, !memcmp(s->q, y, s->length * bytes) && y[floats] == 7, "rotation");
  rotate(x, s->length, shape->heads, shape->head_dim, s->cos, s->sin, s->heads.turned, x, &crew);
  check(s, !memcmp(s->q, x, s->length * bytes), "rotation in place");
  free(x), free(y);
}

// The largest error of a row, as a part of the largest value that it sees. Scores are rounded in proportion to their
// size, so rows with scores beyond 8 may have larger errors.
static double reference_error(const Sequence *s, size_t row) {
  const AttentionShape *shape = &s->shape;
  const size_t dim = shape->head_dim, shared = shape->heads / shape->kv_heads;
  const size_t first = shape->window && row >= shape->window ? row + 1 - shape->window : 0;
  double *weights = malloc((row + 1) * sizeof(double)), worst = 0;
  for (size_t head = 0; head < shape->heads; head++) {
    const float *q = s->q + row * s->q_row + head * dim;
    double highest = -INFINITY, loudest = 8, total = 0, largest = 0, error = 0;
    for (size_t j = first; j <= row; j++) {
      const float *k = s->k + j * s->kv_row + head / shared * dim;
      double sum = 0;
      for (size_t d = 0; d < dim; d++) sum += (double)q[d] * (double)k[d];
      sum *= (double)shape->scale;
      if (fabs(sum) > loudest) loudest = fabs(sum);
      if (shape->softcap != 0) sum = (double)shape->softcap * tanh(sum / (double)shape->softcap);
      weights[j] = sum;
      if (sum > highest) highest = sum;
    }
    for (size_t j = first; j <= row; j++) total += weights[j] = exp(weights[j] - highest);
    for (size_t d = 0; d < dim; d++) {
      double sum = 0;
      for (size_t j = first; j <= row; j++) {
        const double v = (double)s->v[j * s->kv_row + head / shared * dim + d];
        sum += weights[j] * v;
        if (fabs(v) > largest) largest = fabs(v);
      }
      const double difference = fabs(sum / total - (double)s->out[row * s->q_row + head * dim + d]);
      // A NaN is the worst.
      if (!(difference <= error)) error = difference;
    }
    error = error / largest * 8 / loudest;
    if (!(error <= worst)) worst = error;
  }
  free(weights);
  return worst;
}

// Rows from .. to - 1 of the sequence, in a call of their own.
static void attend_rows(Sequence *s, Cache *cache, const int64_t *blocks, size_t from, size_t to, float *out,
                        Crew crew) {
  const Span span = {.first_row = 0, .count = (int64_t)(to - from), .start = (int64_t)from, .blocks = blocks};
  Heads heads = s->heads;
  heads.qk += from * heads.qk_stride;
  heads.v += from * heads.v_stride;
  if (heads.cos) heads.cos += from * (heads.turned / 2), heads.sin += from * (heads.turned / 2);
  const bool done = attention_paged(&s->shape, cache->numbers, &span, 1, &heads, to - from, NULL, 0,
                                    out + from * s->q_row, &crew);
  check(s, done, "memory");
}

static void attend_cut(Sequence *s, const size_t *sizes, size_t size_count, Crew crew, const char *what) {
  Cache cache = cache_new(&s->shape, s->length / s->shape.block + 3);
  const int64_t *blocks = cache_take(&cache, &s->shape, s->length);
  for (size_t from = 0, i = 0; from < s->length; i++) {
    const size_t rest = s->length - from, size = sizes[i % size_count];
    attend_rows(s, &cache, blocks, from, from + (size < rest ? size : rest), s->other, crew);
    from += size;
  }
  check_bits(s, what);
  cache_free(cache);
}

// The second half of the sequence, in a batch: others before and after it, rows of no span between them. Wanted rows
// come in an odd order and twice.
static void attend_in_batch(Sequence *s, Crew crew, const char *what) {
  const AttentionShape *shape = &s->shape;
  const size_t half = s->length / 2, rest = s->length - half, others = 5, gap = 2;
  const size_t rows = rest + 2 * others + gap, after = others + gap + rest;
  const size_t qk_row = s->heads.qk_stride, angles = s->heads.turned / 2, first = others + gap;
  float *qk = random_floats(rows * qk_row), *v = random_floats(rows * s->kv_row);
  float *cos = random_floats(rows * angles), *sin = random_floats(rows * angles);
  memcpy(qk + first * qk_row, s->heads.qk + half * qk_row, rest * qk_row * sizeof(float));
  for (size_t row = 0; row < rest; row++) {
    const float *from = s->heads.v + (half + row) * s->heads.v_stride;
    memcpy(v + (first + row) * s->kv_row, from, s->kv_row * sizeof(float));
  }
  memcpy(cos + first * angles, s->cos + half * angles, rest * angles * sizeof(float));
  memcpy(sin + first * angles, s->sin + half * angles, rest * angles * sizeof(float));
  const Heads heads = {.qk = qk, .v = v, .qk_stride = qk_row, .v_stride = s->kv_row,
                       .cos = cos, .sin = sin, .turned = s->heads.turned};
  Cache cache = cache_new(shape, s->length / shape->block + 6);
  const int64_t *before_blocks = cache_take(&cache, shape, others), *after_blocks = cache_take(&cache, shape, others);
  const int64_t *blocks = cache_take(&cache, shape, s->length);
  attend_rows(s, &cache, blocks, 0, half, s->other, crew);
  const Span spans[3] = {
      {.first_row = (int64_t)after, .count = (int64_t)others, .start = 0, .blocks = after_blocks},
      {.first_row = (int64_t)(others + gap), .count = (int64_t)rest, .start = (int64_t)half, .blocks = blocks},
      {.first_row = 0, .count = (int64_t)others, .start = 0, .blocks = before_blocks},
  };
  const size_t wanted_count = rows + 3;
  int64_t *wanted = malloc(wanted_count * sizeof(int64_t));
  for (size_t i = 0; i < rows; i++) wanted[i] = (int64_t)(i % 2 ? i / 2 : rows - 1 - i / 2);
  wanted[rows] = (int64_t)others;
  wanted[rows + 1] = (int64_t)(others + gap + rest / 2);
  wanted[rows + 2] = (int64_t)(rows - 1);
  float *out = malloc(wanted_count * s->q_row * sizeof(float));
  memset(out, 0x7f, wanted_count * s->q_row * sizeof(float));
  check(s, attention_paged(shape, cache.numbers, spans, 3, &heads, rows, wanted, wanted_count, out, &crew), "memory");
  for (size_t i = 0; i < wanted_count; i++) {
    const size_t row = (size_t)wanted[i];
    const float *result = out + i * s->q_row;
    if (row >= others + gap && row < after) {
      memcpy(s->other + (half + row - others - gap) * s->q_row, result, s->q_row * sizeof(float));
    } else if (row >= others && row < others + gap) {
      for (size_t d = 0; d < s->q_row; d++) check(s, result[d] == 0, "rows of no span");
    }
  }
  check_bits(s, what);
  cache_free(cache);
  free(qk), free(v), free(cos), free(sin), free(wanted), free(out);
}

// Floats: of a cache of halves, what those hold.
static void attend_plain(Sequence *s, Crew crew) {
  const size_t half = s->length / 2;
  AttentionShape shape = s->shape;
  shape.half = false;
  check(s, attention_plain(&shape, s->q, s->k, s->v, s->length, s->length, s->other, &crew), "memory");
  check_bits(s, "without a cache");
  memcpy(s->other, s->out, half * s->q_row * sizeof(float));
  check(s, attention_plain(&shape, s->q + half * s->q_row, s->k, s->v, s->length - half, s->length,
                           s->other + half * s->q_row, &crew), "memory");
  check_bits(s, "without a cache, the last rows");
}

// Of all results, to compare processors: their bits are the same.
static uint32_t bits_hash(const float *floats, size_t count) {
  const uint32_t *bits = (const uint32_t *)floats;
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < count; i++) hash = (hash ^ bits[i]) * 16777619u;
  return hash;
}

static bool run_case(AttentionShape shape, size_t length, float loudness, Crew *crews) {
  static size_t calls = 0;
  const size_t cases = calls++ / 2;  // once with floats, once with halves
  const size_t turned[] = {shape.head_dim / 2 * 2, 0, shape.head_dim / 4 * 2};
  Sequence s = {.shape = shape, .length = length, .q_row = shape.heads * shape.head_dim};
  s.kv_row = shape.kv_heads * shape.head_dim;
  s.shape.scale = loudness / sqrtf((float)shape.head_dim);
  s.heads.turned = turned[cases % 3];
  lay_heads(&s, cases % 2 == 0);
  rotate_heads(&s);
  check_rotation(&s, crews[cases % 4]);
  s.out = malloc(length * s.q_row * sizeof(float));
  s.other = malloc(length * s.q_row * sizeof(float));
  Cache cache = cache_new(&s.shape, length / shape.block + 2);
  attend_rows(&s, &cache, cache.order, 0, length, s.out, crews[0]);
  cache_free(cache);
  double worst = 0;
  const size_t step = length > 100 ? length / 20 : 1;
  for (size_t row = length - 1; row < length; row -= step < row || !row ? step : row) {
    const double error = reference_error(&s, row);
    if (!(error <= worst)) worst = error;
  }
  check(&s, worst < 2e-6, "accuracy");
  static const size_t ones[] = {1}, odd[] = {7, 64, 1, 13, 129, 31, 3}, large[] = {511, 2, 513, 1, 300};
  const size_t whole[] = {length};
  attend_cut(&s, odd, 7, crews[0], "odd chunks");
  attend_cut(&s, large, 5, crews[2], "large chunks, 3 threads");
  if (length <= 700) attend_cut(&s, ones, 1, crews[length % 4], "token by token");
  if (length > 700) {
    const size_t last[] = {length - 9, 1, 2, 1, 1, 3, 1};
    attend_cut(&s, last, 7, crews[1], "tokens at the end, 2 threads");
    attend_cut(&s, last, 7, crews[3], "tokens at the end, 16 threads");
  }
  attend_cut(&s, whole, 1, crews[1], "2 threads");
  attend_cut(&s, whole, 1, crews[2], "3 threads");
  attend_cut(&s, whole, 1, crews[3], "16 threads");
  attend_in_batch(&s, crews[0], "in a batch");
  attend_in_batch(&s, crews[3], "in a batch, 16 threads");
  attend_plain(&s, crews[1]);
  printf("%s %s, heads %zu/%zu of %zu, %zu turned, block %zu, window %zu, softcap %g, length %zu: bits %08x, error %.1e\n",
         s.failed ? "FAIL" : "OK  ", shape.half ? "halves" : "floats", shape.heads, shape.kv_heads, shape.head_dim, s.heads.turned, shape.block,
         shape.window, (double)shape.softcap, length, bits_hash(s.out, length * s.q_row), worst);
  fflush(stdout);
  free(s.q), free(s.k), free(s.v), free(s.out), free(s.other);
  free(s.qk_memory), free(s.v_memory), free(s.cos), free(s.sin);
  return !s.failed;
}

// --- Time ---

// Microseconds; of one thread alone, its CPU time, which suffers less from other programs.
static double now(Crew crew) {
  struct timespec time;
  clock_gettime(crew.threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// `sequences` of `past` positions, each with `count` new ones.
static void time_case(size_t sequences, size_t past, size_t count, bool half, Crew crew) {
  const AttentionShape shape = {.heads = 8, .kv_heads = 4, .head_dim = 64, .block = 64, .scale = 0.125f, .half = half};
  const size_t rows = sequences * count, positions = past + count, blocks = (positions + 63) / 64;
  float *qkv = random_floats(rows * 1024), *cos = random_floats(rows * 32), *sin = random_floats(rows * 32);
  const Heads heads = {.qk = qkv, .v = qkv + 768, .qk_stride = 1024, .v_stride = 1024,
                       .cos = cos, .sin = sin, .turned = 64};
  float *out = malloc(rows * 512 * sizeof(float));
  Cache cache = cache_new(&shape, sequences * blocks);
  for (size_t i = 0; i < sequences * blocks * attention_block_elements(&shape); i++) {
    const float number = 1.7f * random_number();
    if (half) {
      halves_narrow(&number, 1, (uint16_t *)cache.numbers + i);
    } else {
      ((float *)cache.numbers)[i] = number;
    }
  }
  Span *spans = malloc(sequences * sizeof(Span));
  for (size_t s = 0; s < sequences; s++) {
    spans[s] = (Span){(int64_t)(s * count), (int64_t)count, (int64_t)past, cache.order + s * blocks};
  }
  double best = INFINITY, total = 0;
  for (int i = 0; i < 300 && (i < 3 || total < 150000); i++) {
    const double start = now(crew);
    attention_paged(&shape, cache.numbers, spans, sequences, &heads, rows, NULL, 0, out, &crew);
    const double took = now(crew) - start;
    if (took < best) best = took;
    total += took;
  }
  const double seen = (double)past + ((double)count + 1) / 2, multiplied = seen * (double)rows * 8 * 64 * 2;
  printf("%2zu × %5zu + %4zu, %s, %zu threads: %9.1f µs, %5.1f G multiply-adds/s\n", sequences, past, count,
         half ? "halves" : "floats", crew.threads, best, multiplied / best / 1e3);
  fflush(stdout);
  free(qkv), free(cos), free(sin), free(out), free(spans);
  cache_free(cache);
}

static void time_all(const Crew *crews, size_t crew_count) {
  static const size_t cases[][3] = {{1, 255, 1}, {1, 1023, 1}, {32, 1023, 1}, {32, 255, 1},  {1, 0, 128},
                                    {1, 0, 512}, {1, 0, 1024}, {1, 2048, 512}, {1, 32767, 1}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    for (size_t c = 0; c < 2 * crew_count; c++) time_case(cases[i][0], cases[i][1], cases[i][2], c % 2, crews[c / 2]);
  }
}

int main(int count, char **arguments) {
  need_vectors();
  if (count > 1 && !strcmp(arguments[1], "time")) {
    const size_t most = count > 2 ? strtoul(arguments[2], NULL, 10) : 2;
    Crew one = crew_of(1, 200), more = crew_of(most, 200);
    const Crew crews[2] = {one, more};
    time_all(crews, 1);
    time_all(crews + 1, 1);
    crew_end(more);
    return 0;
  }
  Crew crews[4];
  static const size_t threads[4] = {1, 2, 3, 16};
  for (int i = 0; i < 4; i++) crews[i] = crew_of(threads[i], 200);
  bool good = true;
  static const size_t dims[] = {16, 24, 40, 64, 80, 96, 128, 256, 20, 18, 7}, shared[] = {1, 2, 3, 4, 7, 8, 50};
  static const size_t blocks[] = {16, 32, 64, 128, 20, 7}, lengths[] = {1, 33, 65, 200};
#define RUN(heads_, kv_, dim_, block_, window_, cap_, length_, loud_) \
  for (int half = 0; half < 2; half++) { \
    good &= run_case((AttentionShape){.heads = heads_, .kv_heads = kv_, .head_dim = dim_, .block = block_, \
                                      .window = window_, .softcap = cap_, .half = half}, length_, loud_, crews); \
  }
  for (size_t i = 0; i < 11; i++) {
    for (size_t j = 0; j < 4; j++) RUN(4, 2, dims[i], blocks[(i + j) % 6], 0, 0, lengths[j], 1);
  }
  for (size_t i = 0; i < 7; i++) RUN(2 * shared[i], 2, i % 2 ? 64 : 40, 32, 0, 0, 150, 1);
  for (size_t i = 0; i < 6; i++) {
    RUN(4, 2, 32, blocks[i], 1 + i * 37, 0, 300, 1);
    RUN(4, 1, 64, blocks[i], 0, i % 2 ? 50 : 5, 300, 6);
    RUN(3, 1, 24, blocks[i], 700, 30, 1100, 2);
  }
  for (size_t i = 0; i < 4; i++) RUN(2, 1, 64, blocks[i], 0, 0, 1500, i == 2 ? 20 : 1);
  RUN(8, 4, 64, 64, 0, 0, 700, 1);
  RUN(8, 4, 64, 64, 512, 0, 3000, 1);
  RUN(2, 2, 128, 64, 0, 0, 3000, 3);
  RUN(4, 1, 256, 64, 1024, 50, 2000, 1);
  for (int i = 0; i < 4; i++) crew_end(crews[i]);
  puts(good ? "OK" : "FAIL");
  return !good;
}
