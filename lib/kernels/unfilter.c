/*
 * unfilter.c - see unfilter.h: the table of implementations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/unfilter_private.h"

static bool
always(void)
{
    return true;
}

const struct unfilter_kind unfilter_kinds[] = {
#ifdef UNFILTER_HAVE_X86
    {"avx512vl", unfilter_avx512_supported, unfilter_gray_avx512},
    {"avx2", unfilter_avx2_supported, unfilter_gray_avx2},
    {"sse4.1", unfilter_sse41_supported, unfilter_gray_sse41},
#endif
#ifdef UNFILTER_HAVE_NEON
    {"neon", always, unfilter_gray_neon},
#endif
    {"c", always, unfilter_gray_c},
    {NULL, NULL, NULL},
};

const struct unfilter_kind *
unfilter_best(void)
{
    const struct unfilter_kind *kind = unfilter_kinds;

    while (!kind->supported())
        kind++;
    return kind;
}
