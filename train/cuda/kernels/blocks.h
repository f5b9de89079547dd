/*
 * blocks.h - data in memory that changes from step to step; see args.h
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

/* ---- data from the host, and state on the device ----------------------------------------------------------------- */

/*
 * Graphs are recorded once, so an argument of a kernel cannot change between steps.  Everything that does is in one of
 * these blocks: batch_block and step_state in device memory, end_block and step_block in mapped host memory.
 */

/* For each micro-batch. */
struct batch_block {
    double scale;    /* of the loss: batch.h */
    unsigned images; /* images that are not padding; at least 1 */
    unsigned number; /* index of the micro-batch in its step; number 0 overwrites the gradients, others accumulate */
};

/* At the end of this rank's part of a step: struct step_end (backend.h). */
struct end_block {
    double fade;               /* (1 - momentum)^following */
    unsigned following, rest;  /* micro-batches of the ranks after this one: full ones, images of a partial one */
    unsigned faults, requests; /* of this rank: 0 or 1; request bits */
};

/* For the update. */
struct step_block {
    double rate, clip; /* clip 0: no clipping */
};

#define STEP_BAD_NONE 0xffffffffu

/* Kept between kernels and between steps; the host reads a copy as the result of a step. */
struct step_state {
    /* Kept between steps, and saved in a checkpoint. */
    double applied;   /* number of applied steps: t of Adam */
    float loss_scale; /* of the next step; 1 without loss scaling */
    unsigned good;    /* applied steps since the loss scale changed */
    unsigned halted;  /* no step is applied until the host clears it */
    /* The current step. */
    float unscale;             /* 1 / the loss scale of this step; multiplies the gradients of weights */
    double loss;               /* of this rank so far; of all ranks after step_decide */
    double labels, known;      /* labels, and those not unknown: of this rank so far; of all ranks after step_decide */
    double rescale;            /* labels / known, or 1: multiplies loss and gradients (train/math/loss.h) */
    double norm;               /* of the gradients of all ranks, before clipping */
    unsigned bad;              /* the first micro-batch of this rank whose loss is not finite, or STEP_BAD_NONE */
    unsigned apply;            /* is this step applied? */
    unsigned faults, requests; /* of all ranks: their number; request bits */
    float factor;              /* multiplies the gradients: rescale, clipping */
    float rate, root, shrink;  /* of Adam: rate / correction, 1 / sqrt(correction), AdamW's decay */
};

/*
 * Starts a step, in additional CTAs of pack_weights: resets loss, labels, known, bad and unscale, and sets the running
 * statistics to those of the last step, or to zero (all ranks except the first).
 */
struct step_begin_args {
    struct step_state *state;
    const float *statistics;
    float *running;
    unsigned count, from_zero;
};

/*
 * The numbers that the ranks sum are this tail, the running statistics of the step, and the gradients, all as floats.
 * The loss is a two-float sum (value and compensation).  The tail has the number of unknown labels, because its sum is
 * exact if it is 0; other sums of counts are rounded above 2^24.
 */
#define TAIL_REQUESTS 8
enum {
    TAIL_LOSS,
    TAIL_LOSS_REST,
    TAIL_LABELS,
    TAIL_UNKNOWN,
    TAIL_FAULTS,
    TAIL_REQUEST,
    TAIL_FLOATS = TAIL_REQUEST + TAIL_REQUESTS
};

#endif
