/*
 * unfilter_wave.h - the wavefront over the rows of a gray image, for one register width
 *
 * Included by unfilter_x86.c once for each width, after it has defined
 *     WAVE_TARGET    the function attribute            WAVE_NAME(x)   x with the width in its name
 *     WAVE_LANES     rows of the wavefront, a multiple of 16; a register holds one byte of each
 *     vec            the register type, and V(op)      the intrinsic of this name for it
 *     WAVE_UP(pixels, above)   pixels moved up by one lane, byte 15 of the 128-bit `above` into lane 0
 *     WAVE_LOAD(p, d)          16 bytes from p, above them, as the register is wide, 16 from p + d, p + 2 d, p + 3 d
 *     WAVE_STORE(v, p, d)      the reverse
 *     WAVE_CHOOSE(a, b, mask)  b where the bits of mask are 1, a where they are 0
 *     WAVE_STARTED(v, t)       v, with 0 in the lanes that have not reached their first pixel before step t
 *     vec16, WAVE_LOAD_16(p), WAVE_ZERO_16()     a register of 16 bytes
 *     WAVE_ABOVE_AT(above, j)  a 16-byte register shifted so that byte j of above becomes byte 15
 *
 * At step t, lane k computes pixel x = t - k of row y0 + k.  `pixels` are the pixels of the step before:
 *     left   = pixels           (lane k, pixel x - 1)
 *     up     = WAVE_UP(pixels)  (lane k - 1 was at pixel x then; lane 0 takes the row above the group)
 *     corner = up of the step before
 * So a step costs one shift between lanes.  Raw bytes are loaded, and pixels stored, in transposed blocks of 16 steps.
 *
 * Paeth in 8 bits: low and high are the smaller and the larger of left and up.  With above = high - corner and below =
 * corner - low, or 0 where negative, the distances from the estimate left + up - corner to low, high and corner are
 * above, below and |above - below|.  So low is nearest if 2 above <= below, and high if 2 below <= above.  Saturation
 * of the doubled value does no harm: above + below is at most 255.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

struct WAVE_NAME(masks) {
    vec sub, up, average, paeth;
};

static inline WAVE_TARGET void
WAVE_NAME(set_masks)(vec types, struct WAVE_NAME(masks) * m)
{
    m->sub = V(cmpeq_epi8)(types, V(set1_epi8)(1));
    m->up = V(cmpeq_epi8)(types, V(set1_epi8)(2));
    m->average = V(cmpeq_epi8)(types, V(set1_epi8)(3));
    m->paeth = V(cmpeq_epi8)(types, V(set1_epi8)(4));
}

/*
 * types: the filter types of the group, for which there is a version of its own if most groups of radiographs have
 * them; a constant wherever this is expanded.
 */
static inline __attribute__((always_inline)) WAVE_TARGET vec
WAVE_NAME(pixel)(vec raw, vec left, vec up, vec corner, const struct WAVE_NAME(masks) * m, enum wave_types types)
{
    vec low = V(min_epu8)(left, up), high = V(max_epu8)(left, up);
    vec above = V(subs_epu8)(high, corner), below = V(subs_epu8)(corner, low);
    vec above2 = V(adds_epu8)(above, above), below2 = V(adds_epu8)(below, below);
    vec is_low = V(cmpeq_epi8)(V(min_epu8)(above2, below), above2);
    vec is_high = V(cmpeq_epi8)(V(min_epu8)(below2, above), below2);
    /* avg rounds up; subtract the half. */
    vec average = V(sub_epi8)(V(avg_epu8)(left, up), V_SI(and)(V_SI(xor)(left, up), V(set1_epi8)(1)));
    vec other = corner;

    if (types == WAVE_PAETH_AVERAGE)
        other = WAVE_CHOOSE(corner, average, m->average);
    else if (types == WAVE_PAETH_UP)
        other = WAVE_CHOOSE(corner, up, m->up);
    else if (types == WAVE_ANY)
        other = V_SI(or)(V_SI(or)(V_SI(and)(corner, m->paeth), V_SI(and)(average, m->average)),
                         V_SI(or)(V_SI(and)(up, m->up), V_SI(and)(left, m->sub)));
    if (types != WAVE_PAETH) {
        is_low = V_SI(and)(is_low, m->paeth);
        is_high = V_SI(and)(is_high, m->paeth);
    }
    /* Choose last, between the sums: the next step waits for the choice. */
    return WAVE_CHOOSE(WAVE_CHOOSE(V(add_epi8)(raw, other), V(add_epi8)(raw, low), is_low), V(add_epi8)(raw, high),
                       is_high);
}

#define BLOCK_TARGET  WAVE_TARGET
#define BLOCK_NAME(x) WAVE_NAME(x)
#include "kernels/transpose_block.h"

/* The state that passes from block to block. */
struct WAVE_NAME(state) {
    vec pixels, corner;
};

/*
 * One block of 16 steps, beginning with t0.  block holds raw bytes, then pixels.  started: every lane has reached its
 * first pixel; before that, lanes that have not are kept at 0.
 */
static inline __attribute__((always_inline)) WAVE_TARGET void
WAVE_NAME(block)(vec *block, vec16 above, struct WAVE_NAME(state) * state, const struct WAVE_NAME(masks) * masks,
                 enum wave_types types, int t0, bool started)
{
    vec pixels = state->pixels, corner = state->corner;

#define STEP(j)                                                                 \
    do {                                                                        \
        vec up_ = WAVE_UP(pixels, WAVE_ABOVE_AT(above, j));                     \
        pixels = WAVE_NAME(pixel)(block[j], pixels, up_, corner, masks, types); \
        if (!started)                                                           \
            pixels = WAVE_STARTED(pixels, t0 + (j) + 1);                        \
        corner = up_;                                                           \
        block[j] = pixels;                                                      \
    } while (0)

    STEP(0);
    STEP(1);
    STEP(2);
    STEP(3);
    STEP(4);
    STEP(5);
    STEP(6);
    STEP(7);
    STEP(8);
    STEP(9);
    STEP(10);
    STEP(11);
    STEP(12);
    STEP(13);
    STEP(14);
    STEP(15);
#undef STEP
    state->pixels = pixels;
    state->corner = corner;
}

/* A block in which some rows begin or end: process only the valid part of each row. */
static inline WAVE_TARGET void
WAVE_NAME(store_cut)(const vec *row, uint8_t *out, ptrdiff_t stride, ptrdiff_t t0, ptrdiff_t width)
{
    uint8_t bytes[WAVE_LANES * 16]; /* 16 of each lane */
    ptrdiff_t k;

    for (k = 0; k < 16; k++)
        WAVE_STORE(row[k], bytes + 16 * k, 256);
    for (k = 0; k < WAVE_LANES; k++) {
        ptrdiff_t x = t0 - k, from = x < 0 ? -x : 0, to = width - x < 16 ? width - x : 16;

        if (from < to)
            memcpy(out + k * stride + x + from, bytes + 16 * k + from, (size_t)(to - from));
    }
}

/* Process WAVE_LANES rows; above is the row before them, or NULL. */
static inline __attribute__((always_inline)) WAVE_TARGET void
WAVE_NAME(rows)(const uint8_t *raw, ptrdiff_t width, const uint8_t *above, uint8_t *out, ptrdiff_t stride,
                const struct WAVE_NAME(masks) * masks, enum wave_types types)
{
    struct WAVE_NAME(state) state = {V_SI(setzero)(), V_SI(setzero)()};
    ptrdiff_t t0, k;
    vec block[16];

    for (t0 = 0; t0 < width + WAVE_LANES - 1; t0 += 16) {
        /* Outside its row a lane loads bytes of other rows; they are not used. */
        const uint8_t *first = raw + 1 + t0;
        vec16 above_bytes = WAVE_ZERO_16();

        if (above && t0 < width)
            above_bytes = WAVE_LOAD_16(above + t0);
#pragma GCC unroll 16
        for (k = 0; k < 16; k++)
            block[k] = WAVE_LOAD(first + k * width, 16 * width);
        WAVE_NAME(transpose)(block);
        if (t0 < WAVE_LANES)
            WAVE_NAME(block)(block, above_bytes, &state, masks, types, (int)t0, false);
        else
            WAVE_NAME(block)(block, above_bytes, &state, masks, types, 0, true);
        WAVE_NAME(transpose)(block);
        if (t0 < WAVE_LANES || t0 + 16 > width) {
            WAVE_NAME(store_cut)(block, out, stride, t0, width);
            continue;
        }
#pragma GCC unroll 16
        for (k = 0; k < 16; k++) {
            uint8_t *p = out + k * stride + t0 - k;

            WAVE_STORE(block[k], p, 16 * (stride - 1));
        }
    }
}

/* One function for each set of types, so that the registers of one do not limit the others. */
#define ROWS(name, types)                                                                          \
    static __attribute__((noinline)) WAVE_TARGET void WAVE_NAME(name)(                             \
        const uint8_t *raw, ptrdiff_t width, const uint8_t *above, uint8_t *out, ptrdiff_t stride, \
        const struct WAVE_NAME(masks) * masks)                                                     \
    {                                                                                              \
        WAVE_NAME(rows)(raw, width, above, out, stride, masks, types);                             \
    }

ROWS(rows_paeth, WAVE_PAETH)
ROWS(rows_paeth_average, WAVE_PAETH_AVERAGE)
ROWS(rows_paeth_up, WAVE_PAETH_UP)
ROWS(rows_any, WAVE_ANY)
#undef ROWS

static WAVE_TARGET void
WAVE_NAME(group)(const uint8_t *raw, ptrdiff_t width, const uint8_t *above, uint8_t *out, ptrdiff_t stride)
{
    struct WAVE_NAME(masks) masks;
    uint8_t type[WAVE_LANES];
    unsigned set = 0;
    int k;

    for (k = 0; k < WAVE_LANES; k++) {
        type[k] = raw[k * (width + 1)];
        set |= 1u << type[k];
    }
    WAVE_NAME(set_masks)(WAVE_LOAD(type, 16), &masks);
    switch (wave_types_of(set)) {
    case WAVE_PAETH:
        WAVE_NAME(rows_paeth)(raw, width, above, out, stride, &masks);
        break;
    case WAVE_PAETH_AVERAGE:
        WAVE_NAME(rows_paeth_average)(raw, width, above, out, stride, &masks);
        break;
    case WAVE_PAETH_UP:
        WAVE_NAME(rows_paeth_up)(raw, width, above, out, stride, &masks);
        break;
    case WAVE_ANY:
        WAVE_NAME(rows_any)(raw, width, above, out, stride, &masks);
        break;
    }
}

void WAVE_TARGET
WAVE_NAME(unfilter_gray)(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out, size_t stride)
{
    uint32_t y = from;

    /* Loads pass the ends of a row; narrow images have too few bytes after the last row. */
    for (; width >= 2 * WAVE_LANES && to - y >= WAVE_LANES; y += WAVE_LANES) {
        uint8_t *pixels = out + y * stride;

        WAVE_NAME(group)
        (raw + (size_t)y * (width + 1u), (ptrdiff_t)width, y > 0 ? pixels - stride : NULL, pixels, (ptrdiff_t)stride);
    }
    unfilter_gray_c(raw, width, y, to, out, stride);
}
