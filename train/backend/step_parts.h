/*
 * step_parts.h - the parts of an epoch whose time is measured: for the progress line and the files of train/log
 *
 * Seconds of wall time of a rank, of its main thread or of its device; what is left, its bookkeeping, is no part.  On a
 * device with a clock of its own (device_info.own_clock) the host does other things meanwhile: there the parts up to
 * PART_UPDATE are times of the device, PART_WAIT is how long it had nothing to do for want of images, and PART_MEET,
 * in which the host waits for it, comes beside them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STEP_PARTS_H
#define CHEX_TRAIN_STEP_PARTS_H

enum step_part {
    PART_WAIT,     /* for the loader: 0 where the disk keeps up */
    PART_COPY,     /* of a batch to a device, as far as no other part hides it */
    PART_FORWARD,  /* and the gradient of the loss */
    PART_BACKWARD, /* sums over the ranks may run meanwhile */
    PART_REDUCE,   /* waiting for the sums over the ranks */
    PART_UPDATE,   /* the optimizer */
    PART_MEET,     /* waiting for what came of a step, where a device is behind */
    PART_EVALUATE, /* between steps, as are those below */
    PART_SAVE,     /* checkpoints: their copy, and waiting for the one before */
    PART_PEERS,    /* waiting for the other ranks: in evaluations, at checkpoints, at the end of an epoch */
    PART_COUNT
};

/* "data_wait", "copy", "forward", "backward", "reduce", "optimizer", "meet", "evaluation", "save", "peers" */
extern const char *const step_part_name[PART_COUNT];

struct step_times {
    double seconds[PART_COUNT];
};

#endif
