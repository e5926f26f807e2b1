#include "attention/plan.h"

#include <stdlib.h>
#include <string.h>

#include "sizes.h"

// Tasks that a thread should have, so that all end at about the same time.
#define TASKS_PER_THREAD 3
// A tile of fewer rows reads keys and values too often.
#define FEWEST_ROWS 12
// Rates of one thread, per microsecond.
#define MULTIPLIED 20e3
#define BYTES_READ 16e3

static bool in_span(const Span *span, int64_t row) {
  return row >= span->first_row && row - span->first_row < span->count;
}

// The span of a row; span_count if there is none. Rows mostly come in order, so `guess` or the next one is mostly
// right.
static size_t span_of(const Call *call, int64_t row, size_t guess) {
  for (size_t s = guess; s < call->span_count && s < guess + 2; s++) {
    if (in_span(call->spans + s, row)) return s;
  }
  size_t s = 0;
  while (s < call->span_count && !in_span(call->spans + s, row)) s++;
  return s;
}

static int64_t first_seen(const AttentionShape *shape, int64_t position) {
  const int64_t window = (int64_t)shape->window;
  return window && position >= window ? position + 1 - window : 0;
}

// Fills in what a part's tokens see, and what that costs.
static void finish_part(Plan *plan, Part *part) {
  const AttentionShape *shape = plan->call->shape;
  const size_t group = GROUP_BLOCKS * shape->block;
  int64_t lowest = INT64_MAX, highest = 0;
  double seen = 0;
  for (size_t i = part->first; i < part->first + part->count; i++) {
    const int64_t position = plan->tokens[i].position, first = first_seen(shape, position);
    if (first < lowest) lowest = first;
    if (position > highest) highest = position;
    seen += (double)(position + 1 - first);
  }
  part->first_group = (size_t)lowest / group;
  part->end_group = (size_t)highest / group + 1;
  part->pieces = 1;
  const double both = 2 * (double)shape->head_dim;
  const double bytes = both * (double)(shape->kv_heads * attention_element_bytes(shape));  // of a position
  part->cost = seen * both * (double)shape->heads / MULTIPLIED + (double)(highest + 1 - lowest) * bytes / BYTES_READ;
  plan->cost += part->cost;
}

// Tokens per part: as many as a tile can hold, but not so many that threads have nothing to do.
static size_t most_tokens(const Plan *plan, size_t most_rows) {
  const size_t most = most_rows / plan->set_heads, least = divide_up(FEWEST_ROWS, plan->set_heads);
  const size_t share = plan->call->wanted_count * plan->head_sets / (TASKS_PER_THREAD * plan->call->crew->threads);
  if (plan->call->crew->threads < 2 || share >= most) return most;
  return share > least ? share : least < most ? least : most;
}

bool plan_parts(Plan *plan, const Call *call) {
  const AttentionShape *shape = call->shape;
  const size_t most_rows = tile_most_rows(shape), shared = shape->heads / shape->kv_heads;
  *plan = (Plan){.call = call};
  if (!most_rows) return false;
  plan->set_heads = divide_up(shared, divide_up(shared, most_rows));
  plan->sets_per_kv_head = divide_up(shared, plan->set_heads);
  plan->head_sets = shape->kv_heads * plan->sets_per_kv_head;
  plan->tokens = malloc((call->wanted_count + 1) * sizeof(TileToken));
  plan->parts = malloc((call->wanted_count + 1) * sizeof(Part));
  if (!plan->tokens || !plan->parts) return false;
  const size_t most = most_tokens(plan, most_rows), row_floats = shape->heads * shape->head_dim;
  const size_t half = call->turned / 2;
  size_t token_count = 0, span = 0;
  Part *part = NULL;
  for (size_t i = 0; i < call->wanted_count; i++) {
    const int64_t row = call->wanted ? call->wanted[i] : (int64_t)i;
    float *out = call->out + i * row_floats;
    const size_t found = span_of(call, row, span);
    if (found == call->span_count) {
      memset(out, 0, row_floats * sizeof(float));
      continue;
    }
    if (!part || found != span || part->count == most) {
      if (part) finish_part(plan, part);
      part = plan->parts + plan->part_count++;
      *part = (Part){.span = found, .first = token_count};
    }
    span = found;
    plan->tokens[token_count++] = (TileToken){.position = call->spans[span].start + row - call->spans[span].first_row,
                                              .q = call->q + (size_t)row * call->q_stride,
                                              .cos = call->cos + (size_t)row * half,
                                              .sin = call->sin + (size_t)row * half,
                                              .out = out};
    part->count++;
  }
  if (part) finish_part(plan, part);
  return true;
}

// Which spans are stored by the task that attends to them: those of few tokens, all in one part, which alone read what
// they store. A block that they complete could be another span's too.
static bool plan_storing(Plan *plan) {
  const Call *call = plan->call;
  plan->storing = calloc(call->span_count + 1, 1);
  if (!plan->storing) return false;
  if (plan->sets_per_kv_head > 1) return true;
  // 2 = several parts.
  for (size_t i = 0; i < plan->part_count; i++) {
    unsigned char *parts = plan->storing + plan->parts[i].span;
    *parts = *parts ? 2 : 1;
  }
  for (size_t s = 0; s < call->span_count; s++) {
    const Span *span = call->spans + s;
    const size_t place = (size_t)span->start % call->shape->block;
    plan->storing[s] = plan->storing[s] == 1 && place + (size_t)span->count < call->shape->block;
  }
  return true;
}

static int longest_first(const void *a, const void *b) {
  const Part *x = a, *y = b;
  const double cost_x = x->cost / (double)x->pieces, cost_y = y->cost / (double)y->pieces;
  return cost_x > cost_y ? -1 : cost_x < cost_y;
}

bool plan_tasks(Plan *plan) {
  const double wanted_tasks = (double)(TASKS_PER_THREAD * plan->call->crew->threads);
  double task_cost = plan->cost / wanted_tasks;
  if (task_cost < plan->call->crew->task_us) task_cost = plan->call->crew->task_us;
  size_t sums = 0;
  for (size_t i = 0; i < plan->part_count; i++) {
    Part *part = plan->parts + i;
    const size_t groups = part->end_group - part->first_group;
    const size_t pieces = (size_t)(part->cost / (double)plan->head_sets / task_cost) + 1;
    part->pieces = pieces < groups ? pieces : groups;
    plan->task_count += part->pieces * plan->head_sets;
    part->sums = sums;
    if (part->pieces > 1) sums += plan->head_sets * groups * plan_sums_floats(plan, part);
  }
  if (plan->part_count > 1) qsort(plan->parts, plan->part_count, sizeof(Part), longest_first);
  plan->tasks = malloc((plan->task_count + 1) * sizeof(Task));
  plan->pieces_left = malloc((plan->part_count * plan->head_sets + 1) * sizeof(size_t));
  if (sums) plan->sums = aligned_alloc(64, sums * sizeof(float));
  if (!plan->tasks || !plan->pieces_left || (sums && !plan->sums)) return false;
  Task *task = plan->tasks;
  for (size_t i = 0; i < plan->part_count; i++) {
    for (size_t set = 0; set < plan->head_sets; set++) {
      plan->pieces_left[i * plan->head_sets + set] = plan->parts[i].pieces;
      for (size_t piece = 0; piece < plan->parts[i].pieces; piece++) *task++ = (Task){i, set, piece};
    }
  }
  return plan_storing(plan);
}

void plan_free(Plan *plan) {
  free(plan->tokens);
  free(plan->parts);
  free(plan->tasks);
  free(plan->pieces_left);
  free(plan->storing);
  free(plan->sums);
}

Tile plan_tile(const Plan *plan, const Part *part, size_t head_set) {
  const Call *call = plan->call;
  const size_t shared = call->shape->heads / call->shape->kv_heads;
  const size_t kv_head = head_set / plan->sets_per_kv_head, first = head_set % plan->sets_per_kv_head * plan->set_heads;
  return (Tile){.shape = call->shape,
                .cache = call->cache,
                .blocks = call->spans[part->span].blocks,
                .kv_head = kv_head,
                .first_head = kv_head * shared + first,
                .heads = plan->set_heads < shared - first ? plan->set_heads : shared - first,
                .turned = call->turned,
                .tokens = plan->tokens + part->first,
                .count = part->count};
}

size_t plan_sums_floats(const Plan *plan, const Part *part) {
  return tile_sums_floats(plan->call->shape, part->count * plan->set_heads);
}
