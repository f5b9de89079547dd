/*
 * cost.h - what a launch reads, writes and multiplies, from its arguments alone
 *
 * Bytes are those of sectors of 32 bytes of global memory that a launch touches, each counted once, with no image of
 * weight 0, in the first micro-batch of a step: what comes from DRAM were the cache large enough for what one launch
 * reads again.  The test traffic_steps counts the same in the kernels themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_COST_H
#define CHEX_CUDA_PLAN_COST_H

#include "cuda/kernels/launch.h"

#include <stddef.h>
#include <stdint.h>

#define CUDA_SECTOR 32 /* bytes */

/* Rows of `width` bytes, `step` apart. */
struct cuda_area {
    uintptr_t at;
    size_t rows, width, step;
};
#define CUDA_AREAS 40
struct cuda_areas {
    struct cuda_area area[CUDA_AREAS];
    unsigned count;
    uint64_t alone; /* sectors of areas that nobody needs to know of any more */
};

struct cuda_work {
    struct cuda_areas read, written;
    double flop;                 /* multiplications and additions of tensor cores */
    size_t rows, columns, depth; /* of a product; else pixels and channels, or what there is, and depth 0 */
};

/* What arguments do not say: bytes of a value, and tables on the device as the host has them. */
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

/* Of a launch of a plan that lies in this place. */
void cuda_work_of(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *out);
bool cuda_is_conv(const struct cuda_op *op); /* one product */
bool cuda_is_pair(const struct cuda_op *op); /* both gradients of a convolution */
bool cuda_is_both(const struct cuda_op *op); /* the same in one pass */

/* ---- areas (cost_areas.c) ---------------------------------------------------------------------------------------- */

/* Bytes of the sectors of all areas.  Areas of several rows lie apart from all others. */
uint64_t cuda_area_bytes(const struct cuda_areas *a);

void cuda_add_rows(struct cuda_areas *to, const void *at, size_t rows, size_t width, size_t step);
void cuda_add_bytes(struct cuda_areas *to, const void *at, size_t bytes);
void cuda_add_floats(struct cuda_areas *to, const float *at, size_t count);
/* Partial sums of a gradient of so many weights. */
void cuda_add_partial(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t splits, size_t weights);
/* Bytes that lie apart from all others: there may be any number of them. */
void cuda_add_alone(struct cuda_areas *to, const void *at, size_t bytes);
/* A table on the device, as the host has it; NULL: it is not known. */
const void *cuda_known(const struct cuda_place *l, const void *at);

/* Channels of pixels of a slab. */
void cuda_add_slab(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t pixels, size_t channels,
                   size_t ld);
/* A member of a struct on the device. */
#define CUDA_ADD_MEMBER(to, pointer, member) cuda_add_bytes(to, &(pointer)->member, sizeof((pointer)->member))

void cuda_add_sums(struct cuda_areas *to, const struct channel_sums *s);
/* Statistics of so many channels that are seen through a view. */
void cuda_add_view(struct cuda_work *w, const struct norm_view *v, size_t channels);
/* What finishes a gradient of so many pixels and channels while it is loaded, but for the gradient itself. */
void cuda_add_finish(const struct cuda_place *l, const struct norm_finish *f, size_t pixels, size_t channels,
                     struct cuda_work *w);

/* ---- normalisations (cost_norm.c), the head and the step (cost_step.c) --------------------------------- */

#define CUDA_WORK(name) \
    void cuda_work_##name(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w);
CUDA_WORK(norm_sums)
CUDA_WORK(norm_apply)
CUDA_WORK(fold_sums)
CUDA_WORK(norm_settle)
CUDA_WORK(norm_mask)
CUDA_WORK(norm_pool)
CUDA_WORK(linear)
CUDA_WORK(linear_gradient)
CUDA_WORK(loss)
CUDA_WORK(step_end)
CUDA_WORK(squares)
CUDA_WORK(decide)
CUDA_WORK(optimizer)
#undef CUDA_WORK
/* What rides with another launch. */
void cuda_add_running(const struct cuda_place *l, const struct norm_running_args *a, struct cuda_work *w);
void cuda_add_step_begin(const struct step_begin_args *a, struct cuda_work *w);

#endif
