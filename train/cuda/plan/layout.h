/*
 * layout.h - the memory layout of a plan, and the lists of its launches; needs no device
 *
 * cuda_layout_make() walks the graph and assigns addresses, starting at a base address.  With base 0, the end address
 * is the size of the plan (plan_size()).  With the address of an allocation of that size, the result is the plan
 * itself.  Both walks are the same code, so they agree.  Nothing here calls the CUDA runtime.
 *
 * Order of the memory:
 *
 *   arenas
 *   data of a step
 *   packed weights and tables
 *   slots
 *   activations and their gradients, partial sums, weights for scoring; these share memory where possible (memory.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_LAYOUT_H
#define CHEX_CUDA_PLAN_LAYOUT_H

#include "backend/backend.h"
#include "cuda/kernels/launch.h"
#include "cuda/plan/memory.h"

#define CUDA_SLOTS 2 /* micro-batches on the device: one is computed while the next one is copied */

/*
 * Gradients are summed over the ranks in buckets of about 7 MB, from the end of the arena to its start.  Larger buckets
 * use the network better; smaller ones start earlier.  The front of the arena becomes final at the very end and delays
 * the update, so the last bucket is small.  wgrad partial sums are reduced at the end of each bucket.  Sizes are in
 * floats; the emulator uses smaller ones for its small networks.
 */
#ifndef CUDA_BUCKET
#define CUDA_BUCKET ((size_t)7 << 18)
#define CUDA_FRONT  ((size_t)400 << 10)
#endif

/*
 * The loss scale of fp16, as in torch.amp.GradScaler: it doubles after LOSS_SCALE_GROW good steps, and halves after an
 * overflow.
 */
#define LOSS_SCALE_START 65536.0f
#define LOSS_SCALE_LEAST 1.0f
#define LOSS_SCALE_MOST  16777216.0f
#define LOSS_SCALE_GROW  2000

/* The properties of a device that determine memory and launches, in addition to the options. */
struct cuda_chip {
    const struct cuda_kernel *set; /* the kernels of the chosen precision */
    unsigned value_bytes;          /* of an activation: 2; 4 for tf32 and float */
    enum cuda_value value;         /* CUDA_TF32; otherwise plans are chosen by the counts of fp16, also those of bf16 */
    unsigned processors;           /* multiprocessors */
    bool many_sums;                /* tests: plan as if reduce_sums launches took no time, which gives more of them */
    unsigned major;                /* compute capability */
    const unsigned char *refused;  /* [nodes] bits 1 << enum conv_kind: cuDNN refuses this convolution; NULL: none */
};

/* Offsets in a slot, multiples of 16.  One cudaMemcpyAsync() copies a slot unchanged from the host. */
struct cuda_slot {
    size_t block;  /* struct batch_block */
    size_t index;  /* uint32_t [images]: index in the store; STORE_NONE: the image is in pixels */
    size_t crop;   /* struct crop_place [images]; images: batch, with mix-up batch + 1 */
    size_t weight; /* float [batch] */
    size_t mix;    /* float [batch]; nothing without mix-up */
    size_t label;  /* uint8_t [batch][outputs] */
    size_t pixels; /* uint8_t [images][source][source]; copied only if needed, unlike everything before it */
    size_t bytes;
};

/*
 * A buffer of the graph as a slab of [batch * height * width][ld] values.  The output is float: its value and its
 * gradient have the shape of the logits.  A normalised tensor that is never stored (fold.h) has neither address.
 */
struct cuda_tensor {
    uintptr_t value, gradient; /* of a training plan; 0: none.  Without `keep`, other pieces reuse the memory later */
    unsigned ld;
};

enum cuda_list_id {
    CUDA_LIST_INPUT0,  /* from slot 0 to the input buffers of the kernels */
    CUDA_LIST_INPUT1,  /* from slot 1 */
    CUDA_LIST_BEGIN,   /* start of a step: packs weights, resets state and running statistics */
    CUDA_LIST_FORWARD, /* fprop of a micro-batch, with its loss */
    CUDA_LIST_BACKWARD,
    CUDA_LIST_END, /* after the last micro-batch: decays running statistics, fills the tail; rank sums follow */
    CUDA_LIST_UPDATE,
    CUDA_LIST_PACK,         /* for scoring: folds running statistics into the weights, from the parameters */
    CUDA_LIST_PACK_AVERAGE, /* or from their average; valid until a list of training runs */
    CUDA_LIST_SCORE,        /* fprop of one view, to logits */
    CUDA_LIST_SCORE_AVERAGE,
    CUDA_LIST_COUNT
};

struct cuda_list {
    struct cuda_op *op;
    size_t count, capacity;
};

/* Tables that the host fills; the owner of the memory copies them to the device. */
enum cuda_table_id {
    CUDA_TABLE_PACK,            /* struct pack_entry; only in a training plan */
    CUDA_TABLE_FOLD,            /* struct fold_entry */
    CUDA_TABLE_RUNNING,         /* struct running_entry; only in a training plan */
    CUDA_TABLE_SPLITS,          /* struct splits_entry; only in a training plan */
    CUDA_TABLE_STAT_PIXELS,     /* unsigned [stat_floats]: pixels per image under each running statistic */
    CUDA_TABLE_POSITIVE_WEIGHT, /* float [outputs]; may be empty */
    CUDA_TABLE_COUNT
};
struct cuda_table {
    void *host;   /* NULL: the table is empty */
    uintptr_t at; /* on the device */
    size_t bytes;
};

struct cuda_layout {
    const struct plan_options *options;
    const struct graph *graph; /* options->graph */
    struct cuda_chip chip;
    uintptr_t base;

    uintptr_t arena[ARENA_COUNT]; /* 0: not used */
    /*
     * The numbers that are summed over the ranks: tail, running statistics, gradients, in this order.  The parameters
     * at the front of the arena get their gradients last, so these three parts are the last sum.
     */
    uintptr_t sums;
    uintptr_t wire;          /* uint16_t [param_floats], gradients as bfloat16; 0: the ranks sum floats */
    uintptr_t running, tail; /* float [stat_floats], [TAIL_FLOATS] */
    size_t sum_floats;       /* of all three parts, including padding to CUDA_ALIGN bytes */
    uintptr_t state;         /* struct step_state */
    float loss_scale;        /* initial value; 1 without loss scaling */
    /* Used by tests of a plan.  A run puts addresses of mapped host memory into the launches (run/record.c). */
    uintptr_t end_block, step_block;
    uintptr_t batch_block, weight, label; /* of the current micro-batch */
    uintptr_t mix;                        /* of the current micro-batch; 0 without mix-up */
    uintptr_t cells;                      /* its images in the space-to-depth layout of the stem: struct input_args */
    uintptr_t logits;                     /* float [batch][outputs] */
    uintptr_t maps;                       /* float [batch][map_floats of graph_head]; 0: the plan has no maps */
    uintptr_t slots[CUDA_SLOTS];
    struct cuda_slot slot;
    struct cuda_tensor *tensor; /* [buffer_count]; unused for the input */

    bool *cudnn;      /* [node_count] convolutions that cuDNN runs */
    bool *unfinished; /* [node_count] the gradient of the node's output stays A: its consumer finalizes it */
    struct cuda_table table[CUDA_TABLE_COUNT];
    struct cuda_list list[CUDA_LIST_COUNT];
    struct plan_memory memory; /* its parts add up to bytes */
    size_t bytes;              /* from the base */
    struct cuda_memory live;   /* only after cuda_layout_measure(): the live ranges of all buffers, placed */
};

/*
 * Makes the layout; call cuda_layout_free() also after an error.  options and chip.set must outlive it, and the
 * precision must be chosen.  base must be a multiple of 256; all addresses are.
 * CHEX_ERR_MEMORY       also if a micro-batch is too large for the kernels' counters
 * CHEX_ERR_UNSUPPORTED  the kernels do not support the graph; the text names the node
 */
enum chex_status cuda_layout_make(struct cuda_layout *l, const struct plan_options *options,
                                  const struct cuda_chip *chip, uintptr_t base, struct chex_error *err);
/* Computes only bytes, memory, cudnn and live, with one walk over the graph: no launches, no addresses. */
enum chex_status cuda_layout_measure(struct cuda_layout *l, const struct plan_options *options,
                                     const struct cuda_chip *chip, struct chex_error *err);
/* As cuda_layout_make(), with the options and chip of a measured layout; takes its live ranges, so it walks once. */
enum chex_status cuda_layout_make_measured(struct cuda_layout *l, struct cuda_layout *measured, uintptr_t base,
                                           struct chex_error *err);
void cuda_layout_free(struct cuda_layout *l);

struct crop_place cuda_crop_place(const struct crop *crop);

#endif
