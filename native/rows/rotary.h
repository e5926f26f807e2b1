// Rotation of queries and keys by their positions. Every number has the same bits on all processors and wherever it is
// rotated: in an operation of its own or in passing, by attention.
#ifndef FLYWHEEL_ROTARY_H
#define FLYWHEEL_ROTARY_H

#include "kernels.h"

// rows/rotary-lanes.c: one head of n numbers. The first `turned` are rotated, halves against each other, by cos and sin,
// [turned / 2]; the others are copied. turned is even, at most n. y may be x.
void rotate_row(const float *x, size_t n, const float *cos, const float *sin, size_t turned, float *y);

// rows/rotary.c: x and y: [rows][heads][head_dim], cos and sin: [rows][turned / 2].
void rotate(const float *x, size_t rows, size_t heads, size_t head_dim, const float *cos, const float *sin,
            size_t turned, float *y, const Crew *crew);

#endif
