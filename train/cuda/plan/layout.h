/*
 * layout.h - a plan on the device before there is a device: where everything lies, and the lists of its launches
 *
 * The model to keep in mind: cuda_layout_make() walks the graph with a base address and hands out places behind it.
 * With base 0 the end is the number of bytes that the plan takes (plan_size()); with the address of an allocation of so
 * many bytes it is the plan.  Both walks are the same code, so they agree.  Nothing here calls the CUDA runtime.
 *
 * Memory, in this order: arenas; what belongs to a step; packed weights and tables; slots; activations, gradients of
 * activations, partial sums and weights to score with, which lie over each other where no launch sees two of them
 * (memory.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_LAYOUT_H
#define CHEX_CUDA_PLAN_LAYOUT_H

#include "backend/backend.h"
#include "cuda/kernels/launch.h"

#define CUDA_SLOTS 2 /* micro-batches on the device: one is computed, the next is copied */

/*
 * Gradients are summed over the ranks in buckets from the end of the arena, about 7 MB each: large enough for the speed
 * of the network, small enough that the first begins early.  What lies in front is final at the very end and delays the
 * update, so the last bucket is a small one.  Gradients of weights are added where a bucket ends.  Floats; smaller ones
 * in the emulator, for its small networks.
 */
#ifndef CUDA_BUCKET
#define CUDA_BUCKET ((size_t)7 << 18)
#define CUDA_FRONT  ((size_t)400 << 10)
#endif

/* The loss scale of fp16, as torch.amp.GradScaler: it doubles after so many good steps, and falls by half. */
#define LOSS_SCALE_START 65536.0f
#define LOSS_SCALE_LEAST 1.0f
#define LOSS_SCALE_MOST  16777216.0f
#define LOSS_SCALE_GROW  2000

/* What a layout depends on besides the options: all that decides about memory and launches. */
struct cuda_chip {
    const struct cuda_kernel *set; /* of the precision that was chosen */
    unsigned value_bytes;          /* of an activation: 2, or 4 in the emulator */
    unsigned processors;           /* multiprocessors */
    double launch;                 /* microseconds of a launch that does next to nothing; tests: 0 for more of them */
    unsigned major;                /* compute capability */
    const unsigned char *refused;  /* [nodes] bits 1 << enum conv_kind: cuDNN does not; NULL: none */
};
#define CUDA_LAUNCH 3.0

/* Bytes of a slot, from its beginning, each a multiple of 16: what cudaMemcpyAsync() brings from the host as it is. */
struct cuda_slot {
    size_t block;  /* struct batch_block */
    size_t index;  /* uint32_t [batch], STORE_NONE: it is in pixels */
    size_t crop;   /* struct crop_place [batch] */
    size_t weight; /* float [batch] */
    size_t label;  /* uint8_t [batch][outputs] */
    size_t pixels; /* uint8_t [batch][source][source]; what is before it is copied always, this where it is needed */
    size_t bytes;
};

/*
 * A buffer of the graph, as [batch * height * width][ld] of values.  The output is float: its value is that of the
 * logits, and its gradient has their shape too.  A normalised tensor that is written nowhere (fold.h) has neither.
 */
struct cuda_tensor {
    uintptr_t value, gradient; /* of a plan that trains; 0: none.  Without `keep` others lie there later */
    unsigned ld;
};

enum cuda_list_id {
    CUDA_LIST_INPUT0,  /* from slot 0 to where the kernels look */
    CUDA_LIST_INPUT1,  /* from slot 1 */
    CUDA_LIST_BEGIN,   /* of a step: packed weights, state, running statistics */
    CUDA_LIST_FORWARD, /* of a micro-batch, with its loss */
    CUDA_LIST_BACKWARD,
    CUDA_LIST_END, /* behind the last micro-batch: running statistics fade, the tail; then come the sums of ranks */
    CUDA_LIST_UPDATE,
    CUDA_LIST_PACK,         /* to score: weights with running statistics, of the parameters */
    CUDA_LIST_PACK_AVERAGE, /* or of their average; they stay until another list runs that does not score */
    CUDA_LIST_SCORE,        /* one view forward, to logits */
    CUDA_LIST_SCORE_AVERAGE,
    CUDA_LIST_COUNT
};

struct cuda_list {
    struct cuda_op *op;
    size_t count, capacity;
};

/* What the host makes and whoever has the memory copies there. */
enum cuda_table_id {
    CUDA_TABLE_PACK,            /* struct pack_entry; of a plan that trains */
    CUDA_TABLE_FOLD,            /* struct fold_entry */
    CUDA_TABLE_RUNNING,         /* struct running_entry; the same */
    CUDA_TABLE_SPLITS,          /* struct splits_entry; the same */
    CUDA_TABLE_STAT_PIXELS,     /* unsigned [stat_floats] of an image, where that running statistic is taken */
    CUDA_TABLE_POSITIVE_WEIGHT, /* float [outputs]; may be empty */
    CUDA_TABLE_COUNT
};
struct cuda_table {
    void *host;   /* NULL: it is empty */
    uintptr_t at; /* on the device */
    size_t bytes;
};

struct cuda_layout {
    const struct plan_options *options;
    const struct graph *graph; /* that of options */
    struct cuda_chip chip;
    uintptr_t base;

    uintptr_t arena[ARENA_COUNT]; /* 0: not wanted */
    /*
     * What is summed over the ranks: tail, running statistics, gradients.  In this order, since the parameters in front
     * of the arena have their gradients last: with what is before them they are one sum.
     */
    uintptr_t sums;
    uintptr_t wire;          /* uint16_t [param_floats], gradients as bfloat16; 0: floats are summed */
    uintptr_t running, tail; /* float [stat_floats], [TAIL_FLOATS] */
    size_t sum_floats;       /* of all, with what lies between, up to CUDA_ALIGN bytes */
    uintptr_t state;         /* struct step_state */
    float loss_scale;        /* of a new plan, 1 without one */
    uintptr_t end_block, step_block;
    uintptr_t batch_block, weight, label; /* of the micro-batch at hand */
    uintptr_t cells;                      /* of its images, as the stem reads them: struct input_args */
    uintptr_t logits;                     /* float [batch][outputs] */
    uintptr_t slots[CUDA_SLOTS];
    struct cuda_slot slot;
    struct cuda_tensor *tensor; /* [buffer_count]; the input has none */

    bool *cudnn;      /* [node_count] convolutions for cuDNN */
    bool *unfinished; /* [node_count] the gradient of what it writes stays A: who reads it finishes it */
    struct cuda_table table[CUDA_TABLE_COUNT];
    struct cuda_list list[CUDA_LIST_COUNT];
    struct plan_memory memory; /* its parts add up to bytes */
    size_t bytes;              /* from the base */
};

/*
 * Make it; cuda_layout_free() frees it, also after an error.  options and chip.set outlive it; the precision is the one
 * that was chosen.  base is a multiple of 256, as all places are.
 * CHEX_ERR_MEMORY  also of a micro-batch that kernels cannot count
 * CHEX_ERR_UNSUPPORTED  a graph that these kernels do not do: names the node
 */
enum chex_status cuda_layout_make(struct cuda_layout *l, const struct plan_options *options,
                                  const struct cuda_chip *chip, uintptr_t base, struct chex_error *err);
void cuda_layout_free(struct cuda_layout *l);

#endif
