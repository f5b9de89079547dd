/*
 * convolve_private.h - kernels for factors of any size and for small factors, called through convolve.h
 *
 * Any size (wide): a factor has a high and a low part (resample_axis.h).  Each part has its own sum modulo 2^32 of
 * 16-bit products, and the end joins the two sums.
 *
 * Small: if a side shrinks by a power of two, the bilinear factors are small integers over a power of two: 1 3 5 7 7 5
 * 3 1 over 32 for 1024 to 256.  Then 8-bit factors and 16-bit sums are exact.  No factor is negative, and the factors
 * of an output sample add up to at most 128.  So a sum is at most 128 * 255, and with the half for rounding, 64, still
 * below 2^15.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVOLVE_PRIVATE_H
#define CHEX_LIB_CONVOLVE_PRIVATE_H

#include "kernels/convolve.h"

/* Rows that convolve_rows() transposes at once: a multiple of the bytes of every implementation's registers. */
#define CONVOLVE_STRIP 32

/* The factors of one output sample, padded with 0 to an even number, and the shift of its sum. */
struct small_factors {
    const int8_t *factor;
    uint32_t count; /* factors without the padding */
    unsigned bits;  /* 0 .. 7 */
};

/* The factors of one output sample: high * 2^12 + low, both padded with 0 to an even number. */
struct wide_factors {
    const int16_t *low, *high;
    uint32_t count; /* factors without the padding */
    bool coarse;    /* all low parts are 0 */
};

/* Plain C, for the samples that do not fill a register. */
uint8_t convolve_small_one(const uint8_t *from, size_t stride, const struct small_factors *f);
uint8_t convolve_wide_one(const uint8_t *from, size_t stride, const struct wide_factors *f);

convolve_wide_columns_fn convolve_wide_columns_c;
convolve_small_columns_fn convolve_small_columns_c;
convolve_small_rows_fn convolve_small_rows_c;
convolve_turn_fn convolve_turn_c;
convolve_turn_back_fn convolve_turn_back_c;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define CONVOLVE_HAVE_X86 1
bool convolve_sse41_supported(void);
bool convolve_avx2_supported(void);
bool convolve_avx512_supported(void);
convolve_wide_columns_fn convolve_wide_columns_avx2, convolve_wide_columns_avx512;
convolve_small_columns_fn convolve_small_columns_sse41, convolve_small_columns_avx2;
convolve_small_rows_fn convolve_small_rows_sse41, convolve_small_rows_avx2;
convolve_turn_fn convolve_turn_avx2;
convolve_turn_back_fn convolve_turn_back_avx2;
#endif

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CONVOLVE_HAVE_NEON 1
convolve_wide_columns_fn convolve_wide_columns_neon;
convolve_small_columns_fn convolve_small_columns_neon;
convolve_small_rows_fn convolve_small_rows_neon;
#endif

#endif
