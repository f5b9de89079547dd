/*
 * seconds.h - how long a launch would take on a GPU, by what it moves and multiplies (work.h)
 *
 * Modelled, not measured: 80 % of the bandwidth of a copy, 75 % of the rate of mma.sync, whole rounds of tiles on the
 * multiprocessors, gaps between launches; what fits into the L2 moves twice as fast.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_ROOF_SECONDS_H
#define CHEX_ROOF_SECONDS_H

#include "roof/work.h"

struct cuda_gpu {
    const char *name; /* a part of what the runtime calls it: "H200" */
    unsigned major, processors;
    double copy;  /* bytes a second, read and written by a copy */
    double mma;   /* FLOP a second that mma.sync reaches in half precision, dense */
    double cache; /* bytes of the L2 */
    double gap;   /* seconds between two launches of a graph of which one waits for the other */
};

/* The one of this name, else one like it: of the same generation, or the last. */
const struct cuda_gpu *cuda_gpu_like(const char *name, unsigned major);

/* Seconds of a launch, the gap behind it included. */
double cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work);

/* Of a convolution: rows and columns of a tile, and how many tiles. */
size_t cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns);

#endif
