/*
 * unfilter_private.h - the implementations behind unfilter.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNFILTER_PRIVATE_H
#define CHEX_LIB_UNFILTER_PRIVATE_H

#include "unfilter.h"

/* Rows from .. to - 1 in plain C: what is left over by those that take 16 or 32 rows at once. */
void unfilter_gray_rows(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out);

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define UNFILTER_HAVE_X86 1
bool unfilter_sse41_supported(void);
bool unfilter_avx2_supported(void);
unfilter_gray_fn unfilter_gray_sse41;
unfilter_gray_fn unfilter_gray_avx2;
#endif

#endif
