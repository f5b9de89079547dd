/*
 * gpu.h - the constants of each GPU, and the cost model of one launch
 *
 * Both the choice of tile shapes (conv.c, one_pass.c) and the report of a plan (model.c) use it.  A launch takes the
 * time of its slowest resource:
 *
 *   DRAM          bytes that are read and written, at the rate that the bytes in flight of the resident warps allow
 *   L2            bytes between L2 and multiprocessors
 *   products      multiply-adds of tensor cores
 *   issue slots   instructions of all warps; few resident warps leave slots empty
 *   shared memory cycles of shared memory, 128 bytes each
 *
 * plus the latency of the first loads of its tiles, the reduction of partial sums in its prologue, and the gap to the
 * next launch.  Instructions and cycles are counted in machine code (kernels/counts.h).  The constants are published or
 * assumed, see gpu.c; nothing was measured by this project.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_GPU_H
#define CHEX_CUDA_PLAN_GPU_H

#include "cuda/kernels/counts.h"

#include <stddef.h>

struct cuda_gpu {
    const char *name; /* a word of the name in the CUDA runtime: "H200" */
    unsigned major, processors;
    double clock;                     /* Hz, under load */
    double copy;                      /* bytes per second, read and written, of a copy */
    double l2;                        /* bytes per second from the L2 to all multiprocessors */
    double mma;                       /* FLOP/s that mma.sync reaches in half precision, dense */
    double cudnn;                     /* FLOP/s that a convolution of cuDNN reaches; 0: the same as the own kernel */
    double cache;                     /* bytes of the L2 */
    double gap;                       /* seconds between two dependent launches of a graph */
    unsigned shared, warps;           /* of a multiprocessor: bytes of shared memory; warps at most */
    const struct cuda_counts *counts; /* of its kernels, in fp16 unless set */
    unsigned value_bytes;             /* of an activation: 2 unless set */
};

/* Returns the GPU of this name; otherwise the last one of its generation, or the last of all. */
struct cuda_gpu cuda_gpu_like(const char *name, unsigned major);

/* Adapts counts, bytes and product rate to the type of values.  Not twice: for tf32, each call halves the rate. */
void cuda_gpu_set_value(struct cuda_gpu *gpu, enum cuda_value value);

/* Returns the name of GPU i of the table, from 0 on; NULL after the last. */
const char *cuda_gpu_name(size_t i);

/* Returns the last GPU of a generation, scaled to this number of multiprocessors; major 0: the newest generation. */
struct cuda_gpu cuda_gpu_of(unsigned major, unsigned processors, enum cuda_value value);

/* Returns the shared memory that a CTA may use on every device of a generation; major 0: the newest. */
unsigned cuda_shared_of(unsigned major);

/* Returns the CTAs that a multiprocessor holds at a time, as CUDA's occupancy calculator does. */
unsigned cuda_resident(const struct cuda_gpu *gpu, unsigned threads, unsigned registers, unsigned shared);

/* The resource that limits a launch. */
enum cuda_limit { CUDA_LIMIT_DRAM, CUDA_LIMIT_L2, CUDA_LIMIT_PRODUCTS, CUDA_LIMIT_ISSUE, CUDA_LIMIT_SHARED };
const char *cuda_limit_name(enum cuda_limit limit);

/* What a CTA needs, and a launch. */
struct cuda_need {
    double flop, instructions, shared; /* instructions of all warps of the CTA; shared: cycles */
};
struct cuda_load {
    double bytes, l2; /* of the launch */
    double ctas, long_ctas;
    struct cuda_need cta, long_cta; /* a pair has CTAs of dgrad, and longer ones of wgrad that start first */
    double tiles;                   /* tiles of a CTA; each waits for its first loads; at least 1 */
    double in_flight;               /* bytes that a CTA requests before it waits for them; 0: as many as needed */
    double before;                  /* seconds of the prologue */
    unsigned threads, registers, shared_bytes;
};

/* Returns the seconds of a launch without the gap, and the resource that takes longest. */
double cuda_load_seconds(const struct cuda_gpu *gpu, const struct cuda_load *load, enum cuda_limit *limit);

/* Returns the seconds to move these bytes to and from memory, or the L2 if they fit. */
double cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes);

/*
 * Returns the time of `ctas` CTAs, `resident` at a time on a multiprocessor, that each reduce `rows` rows of partial
 * sums of `channels` channels.
 */
double cuda_rows_seconds(const struct cuda_gpu *gpu, double ctas, double resident, double rows, double channels);

#endif
