// The vectors of vectors/vectors.h with NEON: 4 lanes.
#ifndef FLYWHEEL_VECTORS_NEON_H
#define FLYWHEEL_VECTORS_NEON_H

#include <arm_neon.h>

#define LANES 4
typedef float32x4_t Lanes;

INLINE Lanes lanes_all(float x) { return vdupq_n_f32(x); }
INLINE Lanes lanes_load(const float *from) { return vld1q_f32(from); }
INLINE void lanes_store(float *to, Lanes x) { vst1q_f32(to, x); }
INLINE Lanes lanes_add(Lanes a, Lanes b) { return vaddq_f32(a, b); }
INLINE Lanes lanes_sub(Lanes a, Lanes b) { return vsubq_f32(a, b); }
INLINE Lanes lanes_mul(Lanes a, Lanes b) { return vmulq_f32(a, b); }
INLINE Lanes lanes_div(Lanes a, Lanes b) { return vdivq_f32(a, b); }
INLINE Lanes lanes_max(Lanes a, Lanes b) { return vmaxq_f32(a, b); }
INLINE Lanes lanes_min(Lanes a, Lanes b) { return vminq_f32(a, b); }
INLINE float lanes_first(Lanes x) { return vgetq_lane_f32(x, 0); }
INLINE float lanes_largest(Lanes x) { return vmaxvq_f32(x); }

INLINE float lanes_sum(Lanes x) {
  const float32x2_t two = vadd_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(vpadd_f32(two, two), 0);
}

INLINE Lanes lanes_load_some(const float *from, size_t count) {
  Lanes x = vsetq_lane_f32(from[0], vdupq_n_f32(0), 0);
  if (count > 1) x = vsetq_lane_f32(from[1], x, 1);
  if (count > 2) x = vsetq_lane_f32(from[2], x, 2);
  return x;
}

INLINE Lanes lanes_widen(const uint16_t *from) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))); }
INLINE void lanes_narrow(uint16_t *to, Lanes x) {
  const Lanes limited = vminq_f32(vmaxq_f32(x, lanes_all(-LARGEST_HALF)), lanes_all(LARGEST_HALF));
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(limited)));
}

INLINE Lanes lanes_plus(Lanes c, Lanes a, Lanes b) { return vfmaq_f32(c, a, b); }
INLINE Lanes lanes_minus(Lanes c, Lanes a, Lanes b) { return vfmsq_f32(c, a, b); }

INLINE Lanes lanes_round(Lanes x) { return vrndnq_f32(x); }

INLINE Lanes lanes_scale(Lanes x, Lanes whole, float least) {
  // whole * 2^23 is added to the exponent's bits.
  const int32x4_t scaled = vaddq_s32(vreinterpretq_s32_f32(x), vcvtq_n_s32_f32(whole, 23));
  return vreinterpretq_f32_s32(vbicq_s32(scaled, vreinterpretq_s32_u32(vcleq_f32(whole, vdupq_n_f32(least)))));
}

INLINE Lanes lanes_sign(Lanes of, Lanes sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, of); }

INLINE Lanes lanes_by_sign(Lanes x, Lanes negative, Lanes other) {
  return vbslq_f32(vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_f32(x), 31)), negative, other);
}

INLINE Lanes lanes_keep(Lanes x, uint32_t from, uint32_t to, float other) {
  static const uint32_t four[4] = {0, 1, 2, 3};
  // Lanes before `from` wrap round to large numbers.
  const uint32x4_t kept = vcltq_u32(vsubq_u32(vld1q_u32(four), vdupq_n_u32(from)), vdupq_n_u32(to - from));
  return vbslq_f32(kept, x, vdupq_n_f32(other));
}

INLINE float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

typedef uint32x4_t Bits;

INLINE Bits bits_magnitude(Lanes x) { return vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(INT32_MAX)); }
INLINE Bits bits_max(Bits a, Bits b) { return vmaxq_u32(a, b); }
INLINE uint32_t bits_largest(Bits x) { return vmaxvq_u32(x); }

#endif
