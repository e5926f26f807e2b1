// The int8 product with AMX: one instruction multiplies 16 rows with 16 outputs over 64 inputs, signed bytes. Of the
// eight tile registers four hold sums (2 digits x 2 output blocks), two the digits, two the weights.

#include <immintrin.h>
#include <string.h>

#include "int8/int8.h"
#include "processor.h"

enum {
  MAX_ROWS = 16,
  PANEL_BYTES = 512 << 10,  // weights that stay in the cache while the rows pass
};

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

// A row block with one or two output blocks, whose sums are still to become outputs.
typedef struct {
  size_t first_row, rows, block, width;
  size_t step;  // rows to finish beside each chunk of the next product
  const Sums *sums;
} Pending;

typedef struct {
  const LinearWeights *weights;
  const Digits *digits;
  Result result;
} Job;

static inline void finish(const Job *job, const Pending *pending, size_t from, size_t end) {
  size_t outputs = job->weights->outputs;
  for (size_t v = 0; v < pending->width; v++) {
    size_t output = (pending->block + v) * BLOCK_OUTPUTS, left = outputs - output;
    __mmask16 mask = left >= BLOCK_OUTPUTS ? 0xffff : (1u << left) - 1;
    __m512 scales = _mm512_load_ps(job->weights->scales + output);
    __m512 bias = _mm512_load_ps(job->weights->bias + output);
    for (size_t r = from; r < end; r++) {
      size_t row = pending->first_row + r, place = row * outputs + output;
      __m512 high = _mm512_cvtepi32_ps(_mm512_load_si512(pending->sums->of[v][0][r]));
      __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(pending->sums->of[v][1][r]));
      __m512 value = _mm512_fmadd_ps(low, _mm512_set1_ps(FINE_UNIT), high);
      value = _mm512_fmadd_ps(value, _mm512_mul_ps(scales, _mm512_set1_ps(job->digits->units[row])), bias);
      if (job->result.residual != NULL)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, job->result.residual + place));
      _mm512_mask_storeu_ps(job->result.y + place, mask, value);
    }
  }
}

// Adds up one or two output blocks in tile registers 0 .. 3, and finishes what is pending meanwhile: the tiles are
// slow, and the processor does both at once if they come mixed. `ahead`: bytes to weights that this thread reads later,
// to fetch them into the cache; 0 = none.
static inline __attribute__((always_inline)) void multiply(const Job *job, const uint8_t *digits, const int8_t *tile,
                                                           size_t ahead, const int width, const Pending *pending) {
  size_t chunks = job->weights->chunks, second = chunks * TILE, digit_bytes = job->digits->height * CHUNK, row = 0;
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
    if (width == 2) {
      _tile_loadd(7, tile + second, 64);
      _tile_dpbssd(2, 4, 7);
      _tile_dpbssd(3, 5, 7);
    }
    if (ahead != 0) {
      for (int i = 0; i < TILE; i += 64) {
        _mm_prefetch((const char *)tile + ahead + i, _MM_HINT_T1);
        if (width == 2) _mm_prefetch((const char *)tile + second + ahead + i, _MM_HINT_T1);
      }
    }
    if (row < pending->rows) {
      size_t end = row + pending->step < pending->rows ? row + pending->step : pending->rows;
      finish(job, pending, row, end);
      row = end;
    }
    tile += TILE;
    digits += 2 * digit_bytes;
  }
}

// One row block with one or two output blocks.
static inline void multiply_place(const Job *job, size_t rows, size_t block, size_t width, size_t ahead, Sums *sums,
                                  Pending *pending) {
  size_t chunks = job->weights->chunks, count = rows_of_block(job->digits, rows);
  const uint8_t *bytes = job->digits->bytes + rows * row_block_bytes(job->digits, chunks);
  const int8_t *tile = (const int8_t *)job->weights->tiles + block * chunks * TILE;
  if (width == 2) multiply(job, bytes, tile, ahead, 2, pending);
  else multiply(job, bytes, tile, ahead, 1, pending);
  _tile_stored(0, sums->of[0][0], 64);
  _tile_stored(1, sums->of[0][1], 64);
  if (width == 2) {
    _tile_stored(2, sums->of[1][0], 64);
    _tile_stored(3, sums->of[1][1], 64);
  }
  *pending = (Pending){rows * job->digits->height, count, block, width, (count + chunks - 1) / chunks, sums};
}

// Rows outside outputs: a row block's digits stay in the nearest cache, and outputs of a row are written one after the
// other.
static void product(const LinearWeights *weights, const Digits *digits, Part part, Result result) {
  Job job = {weights, digits, result};
  Sums sums[2];
  Pending pending = {.rows = 0};
  size_t length = weights->chunks * TILE, turn = 0, panel = PANEL_BYTES / length / 2 * 2;
  if (panel == 0) panel = 2;
  set_shapes(digits->height);
  for (size_t first = part.first_block; first < part.end_block; first += panel) {
    size_t end = first + panel < part.end_block ? first + panel : part.end_block;
    for (size_t rows = part.first_rows; rows < part.end_rows; rows++) {
      for (size_t block = first; block < end; block += 2) {
        size_t left = part.end_block - block, width = left < 2 ? 1 : 2;
        size_t ahead = rows == part.first_rows && left >= 4 ? bytes_ahead(2 * length) : 0;
        multiply_place(&job, rows, block, width, ahead, &sums[turn], &pending);
        turn = !turn;
      }
    }
  }
  finish(&job, &pending, 0, pending.rows);
  _tile_release();
}

const LinearPath int8_amx = {.name = "amx",
                           .runs_here = processor_has_amx,
                           .round = int8_round_bytes,
                           .product = product,
                           .chunk_bytes = DIGIT_BYTES,
                           .least_rows = 8,  // fewer leave most of a tile empty
                           .height = MAX_ROWS,
                           .width = 2,
                           .macs_per_us = 500e3f};
