// What the graph does to rows between its linear maps. Every number of a result depends on its own row alone, and the
// bits are the same on all processors.
#ifndef FLYWHEEL_ELEMENTWISE_H
#define FLYWHEEL_ELEMENTWISE_H

#include "kernels.h"

typedef enum { SILU, GELU_TANH } Activation;

// --- rows/elementwise-lanes.c: one row of n numbers; y may be an input ---

// y = x / sqrt(mean of x² + epsilon) * weight
void rms_norm_row(const float *x, const float *weight, size_t n, float epsilon, float *y);

// y = activation(gate) * up
void gated_row(const float *gate, const float *up, size_t n, Activation activation, float *y);

// --- rows/elementwise.c: many rows, [rows][n] ---

void rms_norm(const float *x, const float *weight, size_t rows, size_t n, float epsilon, float *y, const Crew *crew);
// gate, up: rows of n numbers that begin `stride` numbers apart.
void gated(const float *gate, const float *up, size_t stride, size_t rows, size_t n, Activation activation, float *y,
           const Crew *crew);

#endif
