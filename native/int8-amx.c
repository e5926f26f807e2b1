// The int8 product with AMX: one instruction multiplies 16 rows with 16 outputs over 64 inputs, signed bytes. Of the
// eight tile registers four hold sums (2 digits x 2 output blocks), two the digits, two the weights.
#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,amx-tile,amx-int8")

#include <immintrin.h>
#include <string.h>

#include "int8-parts.h"

enum { MAX_ROWS = 16 };

// Sums of one row block and two output blocks.
typedef struct {
  _Alignas(64) int32_t of[2][2][MAX_ROWS][BLOCK_OUTPUTS];  // [output block][digit]
} Sums;

typedef struct {
  _Alignas(64) uint8_t palette;
  uint8_t start_row, unused[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} TileShapes;
_Static_assert(sizeof(TileShapes) == 64, "what the processor reads");

static void set_shapes(size_t height) {
  TileShapes shapes;
  memset(&shapes, 0, sizeof shapes);
  shapes.palette = 1;
  for (int i = 0; i < 8; i++) {
    shapes.row_bytes[i] = 64;
    shapes.rows[i] = i < 6 ? (uint8_t)height : 16;
  }
  __asm__ volatile("" : : "r"(&shapes) : "memory");  // the intrinsic names only the first bytes as read
  _tile_loadconfig(&shapes);
}

// Adds up in tile registers 0 .. 3. `second`: bytes to the weights of the second output block. `ahead`: bytes to
// weights that this thread reads later, to fetch them into the cache; 0 = none.
static inline void multiply(const uint8_t *digits, size_t digit_bytes, const int8_t *tile, size_t second, size_t ahead,
                            size_t chunks) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t c = 0; c < chunks; c++) {
    _tile_loadd(6, tile, 64);
    _tile_loadd(4, digits, 64);
    _tile_loadd(5, digits + digit_bytes, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(7, tile + second, 64);
    _tile_dpbssd(2, 4, 7);
    _tile_dpbssd(3, 5, 7);
    if (ahead != 0) {
      for (int i = 0; i < TILE; i += 64) {
        _mm_prefetch((const char *)tile + ahead + i, _MM_HINT_T1);
        _mm_prefetch((const char *)tile + second + ahead + i, _MM_HINT_T1);
      }
    }
    tile += TILE;
    digits += 2 * digit_bytes;
  }
}

static inline void multiply_one(const uint8_t *digits, size_t digit_bytes, const int8_t *tile, size_t chunks) {
  _tile_zero(0);
  _tile_zero(1);
  for (size_t c = 0; c < chunks; c++) {
    _tile_loadd(6, tile, 64);
    _tile_loadd(4, digits, 64);
    _tile_loadd(5, digits + digit_bytes, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    tile += TILE;
    digits += 2 * digit_bytes;
  }
}

// A row block and its one or two output blocks.
typedef struct {
  size_t rows, block, width;
} Place;

static inline void finish(const Int8Weights *weights, const Digits *digits, Place place, const Sums *sums,
                          Result result) {
  size_t count = rows_of_block(digits, place.rows), first_row = place.rows * digits->height, outputs = weights->outputs;
  const float *units = digits->units + first_row;
  for (size_t v = 0; v < place.width; v++) {
    size_t output = (place.block + v) * BLOCK_OUTPUTS, left = outputs - output;
    __mmask16 mask = left >= BLOCK_OUTPUTS ? 0xffff : (1u << left) - 1;
    __m512 scales = _mm512_load_ps(weights->scales + output), bias = _mm512_load_ps(weights->bias + output);
    Result to = moved(result, first_row * outputs + output);
    for (size_t r = 0; r < count; r++, to = moved(to, outputs)) {
      __m512 high = _mm512_cvtepi32_ps(_mm512_load_si512(sums->of[v][0][r]));
      __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(sums->of[v][1][r]));
      __m512 value = _mm512_fmadd_ps(low, _mm512_set1_ps(FINE_UNIT), high);
      __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(units[r]));
      value = _mm512_fmadd_ps(value, scale, bias);
      if (to.residual != NULL) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, to.residual));
      _mm512_mask_storeu_ps(to.y, mask, value);
    }
  }
}

// The sums of one place become outputs while the tiles of the next are multiplied: finish() comes after the
// instructions of the next product, which it does not depend on, and before their results are stored.
static void product(const Int8Weights *weights, const Digits *digits, Part part, Result result) {
  Sums sums[2];
  Place last = {0, 0, 0};
  int turn = 0;
  size_t length = weights->chunks * TILE, digit_bytes = digits->height * CHUNK;
  set_shapes(digits->height);
  for (size_t block = part.first_block; block < part.end_block; block += 2) {
    size_t left = part.end_block - block, width = left < 2 ? 1 : 2;
    size_t ahead = left > 2 ? bytes_ahead(2 * length) : 0;
    const int8_t *tile = weights->tiles + block * length;
    for (size_t rows = part.first_rows; rows < part.end_rows; rows++) {
      const uint8_t *bytes = digits->bytes + rows * row_block_bytes(digits, weights->chunks);
      if (width == 2) multiply(bytes, digit_bytes, tile, length, rows == part.first_rows ? ahead : 0, weights->chunks);
      else multiply_one(bytes, digit_bytes, tile, weights->chunks);
      finish(weights, digits, last, &sums[!turn], result);
      _tile_stored(0, sums[turn].of[0][0], 64);
      _tile_stored(1, sums[turn].of[0][1], 64);
      if (width == 2) {
        _tile_stored(2, sums[turn].of[1][0], 64);
        _tile_stored(3, sums[turn].of[1][1], 64);
      }
      last = (Place){rows, block, width};
      turn = !turn;
    }
  }
  finish(weights, digits, last, &sums[!turn], result);
  _tile_release();
}

const Int8Path int8_amx = {.name = "amx",
                           .runs_here = int8_amx_runs,
                           .product = product,
                           .flip = 0,
                           .height = MAX_ROWS,
                           .width = 2,
                           .macs_per_us = 600e3f};

#endif
