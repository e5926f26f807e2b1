// Attention over a cache in blocks: storing new keys and values, then the tiles of attention/tile-lanes.c, shared by
// threads.
#include <stdlib.h>

#include "attention/plan.h"
#include "attention/store.h"

// Numbers that a thread stores, roughly.
#define STORED_PER_US 2000

// --- Storing ---

// Rows of one span that lie in one block.
typedef struct {
  const Span *span;
  int64_t from, to;
} Rows;

typedef struct {
  const Call *call;
  const Rows *rows;
} Storing;

static void store_rows(const Call *call, const Rows *rows) {
  attention_store(call, rows->span, rows->from, rows->to, 0, call->shape->kv_heads);
}

static void store_task(void *data, size_t index) {
  const Storing *storing = data;
  store_rows(storing->call, storing->rows + index);
}

// Stores all spans but those that `skipped` says.
static bool store_spans(const Call *call, const unsigned char *skipped) {
  const size_t block = call->shape->block;
  size_t stored = 0, most_tasks = 0;
  for (size_t s = 0; s < call->span_count; s++) {
    if (skipped && skipped[s]) continue;
    stored += (size_t)call->spans[s].count;
    most_tasks += (size_t)call->spans[s].count / block + 2;
  }
  const size_t floats = stored * 2 * call->shape->kv_heads * call->shape->head_dim;
  const bool shared = crew_tasks(call->crew, (float)floats / STORED_PER_US, 2) > 1;
  Rows *rows = shared ? malloc(most_tasks * sizeof(Rows)) : NULL;
  if (shared && !rows) return false;
  size_t tasks = 0;
  for (size_t s = 0; s < call->span_count; s++) {
    const Span *span = call->spans + s;
    if (skipped && skipped[s]) continue;
    for (int64_t from = 0; from < span->count;) {
      const int64_t rest = span->count - from, space = (int64_t)(block - (size_t)(span->start + from) % block);
      const Rows next = {span, from, from + (rest < space ? rest : space)};
      if (shared) {
        rows[tasks++] = next;
      } else {
        store_rows(call, &next);
      }
      from = next.to;
    }
  }
  Storing storing = {call, rows};
  if (shared) call->crew->run(call->crew->pool, tasks, store_task, &storing);
  free(rows);
  return true;
}

// --- Attending ---

static void attend_task(void *data, size_t index) {
  const Plan *plan = data;
  const Task task = plan->tasks[index];
  const Part *part = plan->parts + task.part;
  const Tile tile = plan_tile(plan, part, task.head_set);
  const Call *call = plan->call;
  // New positions are all in the last block, so only the last group reads them.
  if (call->k && plan->storing[part->span] && task.piece == part->pieces - 1) {
    const Span *span = call->spans + part->span;
    attention_store(call, span, 0, span->count, tile.kv_head, tile.kv_head + 1);
  }
  if (part->pieces == 1) {
    tile_attend(&tile, part->first_group, part->end_group);
    return;
  }
  const size_t groups = part->end_group - part->first_group, floats = plan_sums_floats(plan, part);
  const size_t first = groups * task.piece / part->pieces, end = groups * (task.piece + 1) / part->pieces;
  float *sums = plan->sums + part->sums + task.head_set * groups * floats;
  const size_t stride = tile_sums_floats(call->shape, tile.count * tile.heads);
  tile_sum_groups(&tile, part->first_group + first, part->first_group + end, sums + first * stride);
  // Whoever is last joins them, in order.
  size_t *left = plan->pieces_left + task.part * plan->head_sets + task.head_set;
  if (__atomic_sub_fetch(left, 1, __ATOMIC_ACQ_REL) == 0) tile_join_groups(&tile, sums, groups);
}

static bool attend(const Call *call) {
  Plan plan;
  bool done = plan_parts(&plan, call);
  const bool shared = done && crew_tasks(call->crew, (float)plan.cost, 2) > 1;
  if (shared) done = plan_tasks(&plan);
  if (done && call->k) done = store_spans(call, plan.storing);
  if (done && shared) {
    call->crew->run(call->crew->pool, plan.task_count, attend_task, &plan);
  } else if (done) {
    for (size_t i = 0; i < plan.part_count; i++) {
      for (size_t set = 0; set < plan.head_sets; set++) {
        const Tile tile = plan_tile(&plan, plan.parts + i, set);
        tile_attend(&tile, plan.parts[i].first_group, plan.parts[i].end_group);
      }
    }
  }
  plan_free(&plan);
  return done;
}

bool attention_paged(const AttentionShape *shape, void *cache, const Span *spans, size_t span_count,
                     const Heads *heads, size_t rows, const int64_t *wanted, size_t wanted_count, float *out,
                     const Crew *crew) {
  const Call call = {.shape = shape,
                     .cache = cache,
                     .spans = spans,
                     .span_count = span_count,
                     .q = heads->qk,
                     .k = heads->qk + shape->heads * shape->head_dim,
                     .v = heads->v,
                     .q_stride = heads->qk_stride,
                     .k_stride = heads->qk_stride,
                     .v_stride = heads->v_stride,
                     .cos = heads->cos,
                     .sin = heads->sin,
                     .turned = heads->cos ? heads->turned : 0,
                     .wanted = wanted,
                     .wanted_count = wanted ? wanted_count : rows,
                     .out = out,
                     .crew = crew};
  return attend(&call);
}

bool attention_plain(const AttentionShape *shape, const float *q, const float *k, const float *v, size_t count,
                     size_t keys, float *out, const Crew *crew) {
  if (!tile_most_rows(shape)) return false;
  const size_t blocks = (keys + shape->block - 1) / shape->block;
  float *cache = malloc((blocks * attention_block_elements(shape) + 1) * sizeof(float));
  int64_t *table = malloc((blocks + 1) * sizeof(int64_t));
  bool done = cache && table;
  if (done) {
    for (size_t b = 0; b < blocks; b++) table[b] = (int64_t)b;
    const Span all = {.first_row = 0, .count = (int64_t)keys, .start = 0, .blocks = table};
    const Span queries = {.first_row = 0, .count = (int64_t)count, .start = (int64_t)(keys - count), .blocks = table};
    Call call = {.shape = shape, .cache = cache, .spans = &all, .span_count = 1, .k = k, .v = v, .crew = crew};
    call.k_stride = call.v_stride = shape->kv_heads * shape->head_dim;
    done = store_spans(&call, NULL);
    // Now they are stored.
    call.k = call.v = NULL;
    call.spans = &queries;
    call.q = q;
    call.q_stride = shape->heads * shape->head_dim;
    call.wanted_count = count;
    call.out = out;
    done = done && attend(&call);
  }
  free(cache);
  free(table);
  return done;
}
