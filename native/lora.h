// Low-rank adapters: y = ((x · A) * mask) · B. Factors of several adapters lie side by side, and a row's mask is 0 for the
// columns of others. Such columns cost nothing and change nothing.
#ifndef FLYWHEEL_LORA_H
#define FLYWHEEL_LORA_H

#include "kernels.h"

// --- lora-rows.h: one row ---

// x: [inputs], a: [inputs][columns], mask: [columns] or NULL -> y: [columns]. A column's sum does not depend on others.
void lora_narrow_row(const float *x, size_t inputs, const float *a, size_t columns, const float *mask, float *y);

// t: [columns], b: [columns][outputs] -> y: [outputs]. Columns where t is 0 are not read.
void lora_widen_row(const float *t, size_t columns, const float *b, size_t outputs, float *y);

// --- lora.c: many rows; mask: [rows][columns] or NULL ---

void lora_narrow(const float *x, size_t rows, size_t inputs, const float *a, size_t columns, const float *mask,
                 float *y, const Crew *crew);
void lora_widen(const float *t, size_t rows, size_t columns, const float *b, size_t outputs, float *y,
                const Crew *crew);

#endif
