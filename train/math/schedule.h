/*
 * schedule.h - the learning rate of each step
 *
 *     constant   base
 *     cosine     base * (1 + cos(pi * progress)) / 2; progress goes from 0 to 1 over all steps of the run
 *     plateau    base, times 0.1 whenever the validation loss has not improved for more than `patience` epochs
 *                (torch.optim.lr_scheduler.ReduceLROnPlateau with mode min, factor 0.1, threshold 1e-4 relative,
 *                cooldown 0)
 * All schedules have a linear warm-up from 0 over the first `warmup` steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SCHEDULE_H
#define CHEX_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_kind { SCHEDULE_PLATEAU, SCHEDULE_COSINE, SCHEDULE_CONSTANT };
extern const char *const schedule_names[];

struct schedule_options {
    enum schedule_kind kind;
    double base;
    uint64_t warmup;   /* steps */
    uint64_t steps;    /* of the whole run: for cosine */
    unsigned patience; /* plateau: tolerated epochs without improvement; CheXNet: 0, the first one reduces the rate */
    double factor;     /* plateau: 0.1 */
};

/* State of the schedule, kept in checkpoints. */
struct schedule {
    struct schedule_options options;
    double factor;       /* plateau: product of the reductions so far */
    double best;         /* lowest validation loss; infinite before the first */
    unsigned bad_epochs; /* epochs since `best` */
};

void schedule_init(struct schedule *s, const struct schedule_options *options);
/* Returns the rate of step `number`; the first step of the run is 0. */
double schedule_rate(const struct schedule *s, uint64_t number);
/* Update after an epoch; returns whether the rate was reduced.  A loss that is not finite is no improvement. */
bool schedule_epoch(struct schedule *s, double validation_loss);

#endif
