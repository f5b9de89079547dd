/*
 * weights.h - reads and writes parameters and running statistics by name: torchvision's names and common variants
 *
 * A tensor is searched under its own name and under these variants: with a prefix ("module." of DataParallel, "model.",
 * "densenet121.", "resnet50.", "backbone."), "norm.1" for "norm1" (torchvision before 0.3, CheXNet's published
 * weights), and "classifier.0." or "head." for the last layer.  timm uses torchvision's names.
 *
 * Every tensor of the graph must be found with its shape, otherwise none is used: the error names up to five that do
 * not fit.  With other_head the last layer may have another number of outputs; then it is left unchanged, and *report
 * notes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_WEIGHTS_H
#define CHEX_TRAIN_WEIGHTS_H

#include "checkpoint/safetensors.h"
#include "chex.h"
#include "graph/graph.h"

/* Keys of the metadata: the weights, and each result with them, are of a leaky run; of a short run. */
#define WEIGHTS_LEAKY     "leaky"
#define WEIGHTS_SHORT_RUN "short_run"
#define WEIGHTS_OPERATING "operating" /* thresholds and calibration, see operating.h */
#define WEIGHTS_SHORT     64          /* size of the text, the options of the run; longer ones are cut */

/* The number of found, required and unused tensors; whether the last layer was left unchanged. */
struct weights_report {
    size_t found, wanted, unused; /* unused: tensors of the file that no name matches, without num_batches_tracked */
    bool head_left;
    bool leaky; /* the file has the metadata WEIGHTS_LEAKY, or run.json in its folder marks the run */
    char short_run[WEIGHTS_SHORT];       /* the metadata WEIGHTS_SHORT_RUN; "" if there is none */
    char dataset_id[CHEX_ID_LENGTH + 1]; /* set by trainer_read_model(): of the run, "" if the file has no state */
};

/*
 * Read all tensors of the graph from an open file into the two arenas.
 * CHEX_ERR_INCOMPATIBLE "3 of 606 tensors do not fit: features.conv0.weight: wanted 64x3x7x7, found 64x1x7x7; ..."
 * CHEX_ERR_READ, CHEX_ERR_TRUNCATED, CHEX_ERR_UNSUPPORTED, CHEX_ERR_MEMORY;  CHEX_ERR_DAMAGED a value is not finite
 */
enum chex_status weights_read(const struct graph *g, const struct safetensors *file, bool other_head, float *params,
                              float *stats, struct weights_report *report, struct chex_error *err);

/*
 * Write the arrays under torchvision's names, with the counters that its modules expect (num_batches_tracked = batches,
 * the number of micro-batches so far).  The file loads with load_state_dict(strict=True).  Statuses of
 * safetensors_write().
 */
enum chex_status weights_write(const struct graph *g, const struct folder *folder, const char *name,
                               const float *params, const float *stats, uint64_t batches,
                               const struct metadata *metadata, size_t metadata_count, char *hex,
                               struct chex_error *err);

/*
 * Set random initial values like torchvision's models.  Convolutions are normal after He et al.  (ICCV 2015; fan in for
 * DenseNet, fan out for ResNet); gamma 1, beta 0, running mean 0 and variance 1.  The last layer is uniform in +- 1 /
 * sqrt(fan in); its bias is 0 for DenseNet and uniform for ResNet.
 */
void weights_random(const struct graph *g, uint64_t seed, float *params, float *stats);

/*
 * Read the options of the short run that the weights of an open file are of; "" if they are of a whole run.  Other
 * characters than those of options become '?', because results repeat the text.
 */
void weights_short_run(const struct safetensors *file, char out[WEIGHTS_SHORT]);

/* Returns the name of the first tensor with a value that is not finite, or NULL. */
const char *weights_fault(const struct graph *g, const float *params, const float *stats);

#endif
