/*
 * unfilter_neon.c - the wavefront of unfilter_wave.h in NEON: 16 rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/unfilter_private.h"

#ifdef UNFILTER_HAVE_NEON

#include <arm_neon.h>
#include <string.h>

/* unfilter_wave.h uses the x86 names of the operations. */
#define neon_subs_epu8(a, b)     vqsubq_u8(a, b)
#define neon_adds_epu8(a, b)     vqaddq_u8(a, b)
#define neon_add_epi8(a, b)      vaddq_u8(a, b)
#define neon_sub_epi8(a, b)      vsubq_u8(a, b)
#define neon_min_epu8(a, b)      vminq_u8(a, b)
#define neon_max_epu8(a, b)      vmaxq_u8(a, b)
#define neon_avg_epu8(a, b)      vrhaddq_u8(a, b)
#define neon_cmpeq_epi8(a, b)    vceqq_u8(a, b)
#define neon_set1_epi8(x)        vdupq_n_u8(x)
#define neon_unpacklo_epi8(a, b) vzip1q_u8(a, b)
#define neon_unpackhi_epi8(a, b) vzip2q_u8(a, b)
#define neon_or_si128(a, b)      vorrq_u8(a, b)
#define neon_and_si128(a, b)     vandq_u8(a, b)
#define neon_xor_si128(a, b)     veorq_u8(a, b)
#define neon_setzero_si128()     vdupq_n_u8(0)

static const uint8_t lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#define WAVE_TARGET
#define WAVE_NAME(x)           x##_neon
#define WAVE_LANES             16
#define WAVE_STARTED(v, t)     vandq_u8(v, vcgtq_u8(vdupq_n_u8((uint8_t)(t)), vld1q_u8(lane_numbers)))
#define WAVE_UP(pixels, above) vextq_u8(above, pixels, 15)
#define WAVE_CHOOSE(a, b, m)   vbslq_u8(m, b, a)
#define WAVE_LOAD(p, d)        vld1q_u8(p)
#define WAVE_STORE(v, p, d)    vst1q_u8(p, v)
#define WAVE_LOAD_16(p)        vld1q_u8(p)
#define WAVE_ZERO_16()         vdupq_n_u8(0)
/* j = 15 takes the whole register, because the constant of vextq is at most 15. */
#define WAVE_ABOVE_AT(above, j) ((j) == 15 ? (above) : vextq_u8(vdupq_n_u8(0), above, ((j) + 1) & 15))
#define vec16                   uint8x16_t
#define V(op)                   neon_##op
#define V_SI(op)                neon_##op##_si128
#define vec                     uint8x16_t

#include "kernels/unfilter_wave.h"

#endif
