/*
 * scale_model.h - modelled time of a training step on several ranks: links, all-reduce, overlap with backward
 *
 * The formulas and constants are those of bench/scale_model.py, which names the source of each constant;
 * doc/design/ranks.md describes the model.  Nothing here is measured.
 *
 *     all-reduce   the faster of ring and tree, for `bytes` on N ranks; 0 for one rank
 *         ring     8.4 us + hops + 2 (N - 1) / N x bytes / bandwidth.  The hops are 2 (N - 1), of which 2 (nodes - 1)
 *                  go between nodes; they take 1.9 times as long for messages of 4096 bytes per rank or more on several
 *                  nodes
 *         tree     4.4 us + 2 (ranks of a node - 1) hops inside + 2 ceil(log2(nodes)) hops between nodes
 *                  + 2 bytes / (0.9 x 0.915 x 0.7 x bandwidth)
 *         bandwidth: 0.85 of the nominal bandwidth of the slowest link
 *     step         forward, then backward from the last layer to the first, then the update.  A bucket is summed as
 *                  soon as its gradients are final and the previous all-reduce has ended.  Backward is 5 % slower
 *                  during all-reduces.  Exposed is the time from the end of backward to that of the last all-reduce.
 *     straggler    0.5 % x the time of computing x the expected largest of N standard normal numbers (Blom)
 *     buckets      of 7 MB in float from the end of the arena; the first layers, at most 1.6 MB, are the last bucket,
 *                  together with the running statistics
 *     meetings     20 of an epoch, each (hop + (N - 1) x 2 us)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SCALE_MODEL_H
#define CHEX_TRAIN_SCALE_MODEL_H

#include <stddef.h>

enum scale_link {
    SCALE_EDR, /* networks between nodes first, as scale_network_names */
    SCALE_HDR,
    SCALE_NDR,
    SCALE_10G,
    SCALE_NVLINK_V100,
    SCALE_NVLINK_A100,
    SCALE_NVLINK_H200, /* also H100 */
    SCALE_PCIE
};
extern const char *const scale_link_name[];     /* "EDR", "HDR", "NDR", "10 GbE", "NVLink V100", ... */
extern const char *const scale_network_names[]; /* "edr", ...: the values of --network; NULL-terminated */

/* Returns the link between the GPUs of a node, by the name of the GPU; unknown ones have that of an H200. */
enum scale_link scale_nvlink_of(const char *gpu);

struct scale_machine {
    unsigned node_ranks; /* ranks of a node */
    enum scale_link inside, outside;
};

unsigned scale_nodes(const struct scale_machine *m, unsigned ranks);
double scale_ring(const struct scale_machine *m, unsigned ranks, double bytes);
double scale_tree(const struct scale_machine *m, unsigned ranks, double bytes);
double scale_allreduce(const struct scale_machine *m, unsigned ranks, double bytes);
double scale_meetings(const struct scale_machine *m, unsigned ranks);
/* Returns the expected largest of `ranks` standard normal numbers. */
double scale_largest(unsigned ranks);

/* A layer, in the order of the arena. */
struct scale_layer {
    double parameters, share; /* share: of the time of backward */
};

struct scale_job {
    struct scale_machine machine;
    const struct scale_layer *layer;
    size_t layers;
    double wire;              /* bytes of a gradient in an all-reduce */
    double tail;              /* bytes of the last all-reduce in addition */
    double forward, backward; /* seconds of an image */
    double update;            /* seconds of a step */
};

struct scale_step {
    double forward, backward, exposed, update, straggler, total;
};

/* A step with so many images on each rank. */
struct scale_step scale_step(const struct scale_job *job, unsigned ranks, double images);

#endif
