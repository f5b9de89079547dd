/*
 * unfilter_private.h - the implementations of unfilter.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNFILTER_PRIVATE_H
#define CHEX_LIB_UNFILTER_PRIVATE_H

#include "kernels/unfilter.h"

/* Plain C; also for the remaining rows of implementations that process 16 or more rows at once. */
unfilter_gray_fn unfilter_gray_c;

/* The filter types of a group of rows: those of most groups of radiographs, or any. */
enum wave_types { WAVE_PAETH, WAVE_PAETH_AVERAGE, WAVE_PAETH_UP, WAVE_ANY };

/* types: bit t is 1 if a row has filter type t. */
static inline enum wave_types
wave_types_of(unsigned types)
{
    switch (types) {
    case 1u << 4:
        return WAVE_PAETH;
    case 1u << 4 | 1u << 3:
        return WAVE_PAETH_AVERAGE;
    case 1u << 4 | 1u << 2:
        return WAVE_PAETH_UP;
    default:
        return WAVE_ANY;
    }
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define UNFILTER_HAVE_X86 1
bool unfilter_sse41_supported(void);
bool unfilter_avx2_supported(void);
bool unfilter_avx512_supported(void);
unfilter_gray_fn unfilter_gray_sse41;
unfilter_gray_fn unfilter_gray_avx2;
unfilter_gray_fn unfilter_gray_avx512;
#endif

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define UNFILTER_HAVE_NEON 1
unfilter_gray_fn unfilter_gray_neon;
#endif

#endif
