/*
 * blocks.h - what changes from step to step, in device memory; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_BLOCKS_H
#define CHEX_CUDA_KERNELS_BLOCKS_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdint.h>
#else
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
#endif

/* ---- what the host says, and what stays on the device ------------------------------------------------------------ */

/*
 * Kernels of a graph are recorded once, so nothing that changes from step to step is in an argument: it lies in one of
 * these blocks, in device memory.
 */

/* Of a micro-batch. */
struct batch_block {
    double scale;    /* of the loss: batch.h */
    unsigned images; /* that are no padding; at least 1 */
    unsigned number; /* of the micro-batch in its step; gradients of number 0 begin from zero */
};

/* With the last micro-batch of a step: struct step_end (backend.h). */
struct end_block {
    double fade;               /* (1 - momentum)^following */
    unsigned following, rest;  /* micro-batches of the ranks after this one: full ones, images of a partial one */
    unsigned faults, requests; /* of this rank: 0 or 1, bits */
};

/* Of the update. */
struct step_block {
    double rate, clip; /* clip 0: never */
};

#define STEP_BAD_NONE 0xffffffffu

/* What stays from kernel to kernel and from step to step; the host reads a copy as the result of a step. */
struct step_state {
    /* From step to step, and in a checkpoint. */
    double applied;   /* steps that changed something: t of Adam */
    float loss_scale; /* of the next step; 1 without one */
    unsigned good;    /* steps since it changed */
    unsigned halted;  /* nothing is applied until the host clears it */
    /* Of the step at hand. */
    float unscale;             /* 1 / the loss scale of this step: gradients of weights are multiplied by it */
    double loss;               /* of this rank so far; after step_decide of all ranks */
    double norm;               /* of the gradients of all ranks, before clipping */
    unsigned bad;              /* the first micro-batch of this rank whose loss is not finite, or STEP_BAD_NONE */
    unsigned apply;            /* does this step change anything? */
    unsigned faults, requests; /* of all ranks: how many, bits */
    float factor;              /* of the gradients: clipping */
    float rate, root, shrink;  /* of Adam: rate / correction, 1 / sqrt(correction), AdamW's decay */
};

/*
 * A step begins, by blocks of pack_weights: loss, bad and unscale of the state, and running statistics from where the
 * last step left them, or from zero (ranks but the first).
 */
struct step_begin_args {
    struct step_state *state;
    const float *statistics;
    float *running;
    unsigned count, from_zero;
};

/*
 * Behind the gradients lie the running statistics of the step and this tail, floats: what is summed over the ranks.
 * The loss is two floats, the larger and what it lacks.
 */
#define TAIL_REQUESTS 8
enum { TAIL_LOSS, TAIL_LOSS_REST, TAIL_FAULTS, TAIL_REQUEST, TAIL_FLOATS = TAIL_REQUEST + TAIL_REQUESTS };

#endif
