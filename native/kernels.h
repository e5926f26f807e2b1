// What the kernels offer to the graph's operations (runtime/operations.c). Every row of a result has the same bits whatever rows
// are beside it, however many threads there are, and however a prompt is cut.
#ifndef FLYWHEEL_KERNELS_H
#define FLYWHEEL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attention/shape.h"
#include "threads/crew.h"

// --- linear/linear.c: y = x · W + bias with rounded weights ---

typedef struct LinearWeights LinearWeights;

// Both copy what they keep. scales and bias are floats, bias: [outputs] or NULL. NULL = out of memory.
// int8/weights.c: one byte, activations of two. values: [inputs][outputs] (as stored for the runtime), scales: [outputs].
LinearWeights *int8_weights_pack(const int8_t *values, const float *scales, const float *bias, size_t inputs, size_t outputs);
// int4/weights.c: half a byte, activations of one. inputs is a multiple of 32. values: [outputs][inputs / 2], the earlier input
// in the lower half, 8 = zero; scales: [outputs][inputs / 32].
LinearWeights *int4_weights_pack(const uint8_t *values, const float *scales, const float *bias, size_t inputs, size_t outputs);
void linear_weights_free(LinearWeights *weights);
// How many rows are multiplied here with int8 weights (linear/paths.c).
const char *int8_path_name(void);
size_t linear_weights_inputs(const LinearWeights *weights);
size_t linear_weights_outputs(const LinearWeights *weights);

// What is done to a row before it is multiplied (rows/elementwise.h). Gated: the row is gate, then up, 2 * inputs numbers.
typedef enum { INPUT_PLAIN, INPUT_RMS_NORM, INPUT_GATED_SILU, INPUT_GATED_GELU } LinearInput;

typedef struct {
  LinearInput kind;
  const float *norm_weight;  // [inputs], for INPUT_RMS_NORM, as epsilon
  float epsilon;
  float *kept;  // [rows][inputs], where the rows are stored as they are multiplied, or NULL. Not for INPUT_PLAIN.
} LinearPrologue;

// Of the rows at this map (adapters/lora.h).
typedef struct Adapters Adapters;

// x: [rows][inputs], or [rows][2 * inputs] if gated. adapters: NULL = none. residual: [rows][outputs] or NULL, added last:
// y = ((product + bias) + adapters) + residual, rounded in between. y: [rows][outputs], may be residual if there are no
// adapters. False = out of memory.
bool linear_map(const LinearWeights *weights, const LinearPrologue *prologue, const float *x, size_t rows,
                const Adapters *adapters, const float *residual, float *y, const Crew *crew);

// --- attention/attention.c: attention over a paged cache ---

// New rows of one sequence: rows first_row .. first_row + count - 1 are its positions start .. start + count - 1.
// `blocks`: where the blocks of positions 0 .. start + count - 1 lie in the cache, in order.
typedef struct {
  int64_t first_row, count, start;
  const int64_t *blocks;
} Span;

// Where the heads of row r lie: queries at qk + r * qk_stride, keys heads * head_dim after them; values at
// v + r * v_stride. The first `turned` numbers of each query and key still have to be rotated (rows/rotary.h), by cos and
// sin: [rows][turned / 2]; NULL = no rotation.
typedef struct {
  const float *qk, *v;
  size_t qk_stride, v_stride;
  const float *cos, *sin;
  size_t turned;
} Heads;

// Stores keys and values of all spans in `cache` ([blocks][attention_block_elements]), then writes the attention of
// `wanted` rows, in this order, to out: [wanted_count][heads][head_dim]. wanted = NULL: of all rows. Rows of no span
// become zeros. False = out of memory.
bool attention_paged(const AttentionShape *shape, void *cache, const Span *spans, size_t span_count,
                     const Heads *heads, size_t rows, const int64_t *wanted, size_t wanted_count, float *out,
                     const Crew *crew);

// The same sums over keys and values that are not in a cache, as floats: shape->half is false.
// k, v: [keys][kv_heads][head_dim] at positions 0 .. keys - 1.
// q: [count][heads][head_dim] at positions keys - count .. keys - 1.
bool attention_plain(const AttentionShape *shape, const float *q, const float *k, const float *v, size_t count, size_t keys,
                     float *out, const Crew *crew);

#endif
