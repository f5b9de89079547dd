/*
 * launch.c - see launch.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/launch.h"

unsigned
cuda_blocks(size_t count, unsigned each)
{
    return (unsigned)((count + each - 1) / each);
}

unsigned
cuda_pack_blocks(const struct pack_entry *e)
{
    if (e->stem)
        return cuda_blocks((size_t)e->out * 4 * STEM_IN, PACK_THREADS);
    return cuda_blocks((size_t)e->out * e->in / 8, PACK_EIGHTS(e->taps));
}

unsigned
cuda_sum_blocks(const struct splits_entry *e)
{
    if (e->stem)
        return cuda_blocks((size_t)e->out * STEM_KERNEL * STEM_KERNEL, SUM_STEM);
    return cuda_blocks((size_t)e->out * e->in / 8, SUM_EIGHTS(e->taps, e->splits));
}
