// Low-rank adapters. A map y = x · W made of some parts (q, k and v) gets, for each part, ((x · A) * scale) · B more in
// the outputs of that part. Rows of a batch use different adapters.
//
// Sums have one order, so a row's bits do not depend on the rows beside it, nor on where its adapter lies: a number of
// x · A is 16 sums (input i goes to sum i mod 16), joined as those of vectors/vectors.h; a number of t · B is one sum in the
// order of the columns.
#ifndef FLYWHEEL_LORA_H
#define FLYWHEEL_LORA_H

#include "kernels.h"

// --- adapters/lora-lanes.c: some rows of one adapter ---

// t[i][j] = (x of row rows[i]) · a[j] * scale. x: [..][inputs], a: [columns][inputs], t: rows of t_width numbers.
void lora_narrow_rows(const float *x, size_t inputs, const size_t *rows, size_t count, const float *a, size_t columns,
                      float scale, float *t, size_t t_width);

// Where results go: outputs 0 .. outputs - 1 of rows that are `width` numbers apart.
typedef struct {
  float *y;
  size_t width, outputs;
  bool adds;              // y = y + sum; otherwise y = sum
  const float *residual;  // laid out as y, or NULL: y = residual + y, last
} LoraTarget;

// t: rows of t_width numbers, b: columns of b_width numbers, of which the target's outputs are the first. Without columns
// there is no sum.
void lora_widen_rows(const float *t, size_t t_width, size_t columns, const float *b, size_t b_width, const size_t *rows,
                     size_t count, const LoraTarget *target);

// --- adapters/lora.c: a step. False = out of memory ---

// One map of a model. An adapter of rank r is r, its scale, and a flag for every part of every map (0 = the adapter leaves
// it alone, and what lies at its place is not read), `header` numbers in all. Then come the maps, this one after
// r * place numbers: A of each part, [r][inputs], then B of each part, in panels of LORA_PANEL outputs, [r][outputs of the
// panel].
typedef struct {
  size_t header, place, first_flag;
  size_t inputs, outputs, part_count;
  const int64_t *part_outputs;
} LoraMap;

enum { LORA_RANK, LORA_SCALE, LORA_FLAGS };  // places in the header
enum { LORA_PANEL = 64 };

// begins[i]: where the adapter of row i begins in `factors`; negative = none.
struct Adapters {
  LoraMap map;
  const float *factors;
  const int64_t *begins;
};

// Adds to y, [rows][outputs], what the adapters do to x, [rows][inputs]; then residual, laid out as y, if there is one:
// y = residual + (y + sum).
bool lora_add(const Adapters *adapters, const float *x, size_t rows, const float *residual, float *y, const Crew *crew);

// The same in parts. lora_run does all of it when y is there. If lora_by_outputs says so, threads that make y can do it
// meanwhile: each narrows when x is there, makes some outputs of y, and widens these.
typedef struct LoraWork LoraWork;
LoraWork *lora_begin(const Adapters *adapters, const float *x, size_t rows, const float *residual, float *y,
                     size_t threads);  // NULL = out of memory
void lora_narrow_together(LoraWork *work);
void lora_widen_outputs(const LoraWork *work, size_t first, size_t end);
bool lora_by_outputs(const LoraWork *work);
void lora_run(LoraWork *work, const Crew *crew);
void lora_end(LoraWork *work);

// --- adapters/halves.c: the two halves for one adapter. False = out of memory ---

// a: [inputs][columns] -> t: [rows][columns].
bool lora_narrow(const float *x, size_t rows, size_t inputs, const float *a, size_t columns, float *t,
                 const Crew *crew);
// b: [columns][outputs] -> y: [rows][outputs].
bool lora_widen(const float *t, size_t rows, size_t columns, const float *b, size_t outputs, float *y,
                const Crew *crew);

#endif
