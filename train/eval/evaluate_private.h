/*
 * evaluate_private.h - shared by scoring (evaluate.c) and by loss and metrics (evaluate_compute.c)
 *
 * A rank keeps its scores as a sequence of entries, which is also its message to the other ranks:
 *     double loss, u32 position, float age, u8 sizes of name, patient id and view, u8 sex, float logit[outputs],
 *     float probability[outputs], u8 label[outputs], name, patient id, view
 * in native byte order.  A position without an entry was damaged.  The loss is the sum over the findings; each rank
 * computes it for its images while it scores them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVALUATE_PRIVATE_H
#define CHEX_TRAIN_EVALUATE_PRIVATE_H

#include "data/loader.h"
#include "eval/evaluate.h"

struct entry_head {
    double loss;
    uint32_t position;
    float age;
    uint8_t name_size, patient_size, view_size;
    char sex;
    uint8_t unused[4];
};

/* Append the entry of the image at this position. */
enum chex_status entry_append(struct buffer *b, uint32_t position, const struct loaded_text *text, double loss,
                              const float *logit, const float *probability, const uint8_t *label, unsigned outputs,
                              struct chex_error *err);

/*
 * Sort all entries by position; fills count, image, logit, probability, label, loss, patients, skipped.
 * CHEX_ERR_DAMAGED no image is left; CHEX_ERR_BUG malformed entries; CHEX_ERR_MEMORY
 */
enum chex_status evaluation_unpack(const struct evaluate_options *o, const struct buffer *entries,
                                   struct evaluation *out, struct chex_error *err);

/* Compute the metrics of the unpacked scores without intervals; *draws is the part of this rank for metrics_end(). */
enum chex_status evaluation_compute(const struct evaluate_options *o, unsigned part, unsigned parts,
                                    struct evaluation *out, struct buffer *draws, struct chex_error *err);

#endif
