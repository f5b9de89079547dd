/*
 * cost.h - what a launch reads, writes and multiplies, computed from its arguments
 *
 * Bytes are sectors of 32 bytes of global memory, each counted once per launch.  That is the DRAM traffic of a cache
 * that holds everything which one launch reads more than once.  The counts assume no image of weight 0, and the first
 * micro-batch of a step.  The test traffic_steps compares them with counts in the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_COST_H
#define CHEX_CUDA_PLAN_COST_H

#include "cuda/kernels/launch.h"

#include <stddef.h>
#include <stdint.h>

#define CUDA_SECTOR 32 /* bytes */

/* Rows of `width` bytes at a distance of `step` bytes. */
struct cuda_area {
    uintptr_t at;
    size_t rows, width, step;
};
#define CUDA_AREAS 40
struct cuda_areas {
    struct cuda_area area[CUDA_AREAS];
    unsigned count;
    uint64_t alone; /* sectors of areas that are not compared with others */
};

struct cuda_work {
    struct cuda_areas read, written;
    double flop;                 /* multiplications and additions of tensor cores */
    size_t rows, columns, depth; /* of a product; otherwise pixels and channels, or other sizes, and depth 0 */
};

/* What the arguments do not contain: the bytes of a value, and the host's copies of tables on the device. */
struct cuda_known_table {
    const void *host;
    uintptr_t at;
    size_t bytes;
};
#define CUDA_KNOWN_TABLES 8
struct cuda_place {
    unsigned value_bytes;
    struct cuda_known_table table[CUDA_KNOWN_TABLES];
};

/* Computes the work of a launch of the plan that `l` describes. */
void cuda_work_of(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *out);
bool cuda_is_conv(const struct cuda_op *op);     /* one product */
bool cuda_is_pair(const struct cuda_op *op);     /* dgrad and wgrad of a convolution in one launch */
bool cuda_is_one_pass(const struct cuda_op *op); /* dgrad and wgrad of a convolution in one pass over its pixels */

/* ---- areas (cost_areas.c) ---------------------------------------------------------------------------------------- */

/* Returns the bytes of the sectors of all areas.  Areas with several rows must not overlap others. */
uint64_t cuda_area_bytes(const struct cuda_areas *a);

void cuda_add_rows(struct cuda_areas *to, const void *at, size_t rows, size_t width, size_t step);
void cuda_add_bytes(struct cuda_areas *to, const void *at, size_t bytes);
void cuda_add_floats(struct cuda_areas *to, const float *at, size_t count);
/* Adds the partial sums of the gradient of this number of weights. */
void cuda_add_partial(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t splits, size_t weights);
/* Adds bytes that overlap no other area; any number of them may be added. */
void cuda_add_alone(struct cuda_areas *to, const void *at, size_t bytes);
/* Returns the host's copy of a table on the device; NULL: unknown. */
const void *cuda_known(const struct cuda_place *l, const void *at);

/* Adds `channels` of each pixel of a slab. */
void cuda_add_slab(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t pixels, size_t channels,
                   size_t ld);
/* Adds a member of a struct on the device. */
#define CUDA_ADD_MEMBER(to, pointer, member) cuda_add_bytes(to, &(pointer)->member, sizeof((pointer)->member))

void cuda_add_sums(struct cuda_areas *to, const struct channel_sums *s);
/* Adds the statistics of this number of channels, for a fused BN. */
void cuda_add_view(struct cuda_work *w, const struct norm_view *v, size_t channels);
/* Adds what finalizing a gradient in the prologue reads and writes, except the gradient itself. */
void cuda_add_finalize(const struct cuda_place *l, const struct finalize_view *f, size_t pixels, size_t channels,
                       struct cuda_work *w);

/* ---- normalisations (cost_norm.c), the head and the step (cost_step.c) --------------------------------- */

#define CUDA_WORK(name) \
    void cuda_work_##name(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w);
CUDA_WORK(norm_sums)
CUDA_WORK(norm_apply)
CUDA_WORK(reduce_sums)
CUDA_WORK(norm_finalize)
CUDA_WORK(norm_mask)
CUDA_WORK(norm_pool)
CUDA_WORK(linear)
CUDA_WORK(linear_gradient)
CUDA_WORK(class_maps)
CUDA_WORK(loss)
CUDA_WORK(step_end)
CUDA_WORK(squares)
CUDA_WORK(decide)
CUDA_WORK(optimizer)
#undef CUDA_WORK
/* Returns the bytes of the winners that a launch of a fused max pool writes or reads. */
size_t cuda_winner_bytes(const struct norm_pool_args *a);
/* Additional work that is done by CTAs of another launch. */
void cuda_add_running(const struct cuda_place *l, const struct norm_running_args *a, struct cuda_work *w);
void cuda_add_step_begin(const struct step_begin_args *a, struct cuda_work *w);

#endif
