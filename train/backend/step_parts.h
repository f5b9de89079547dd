/*
 * step_parts.h - the timed parts of an epoch, for the progress line and the files of train/log
 *
 * The times are wall seconds of a rank's main thread or of its device.  The remaining time (bookkeeping) is no part.  A
 * device with its own clock (device_info.own_clock) runs while the host does other work.  Then the parts up to
 * PART_UPDATE are device times, PART_WAIT is the time in which the device waited for images, and PART_MEET is host
 * time, in addition: the host waits for the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STEP_PARTS_H
#define CHEX_TRAIN_STEP_PARTS_H

enum step_part {
    PART_WAIT,     /* for the loader: 0 if the disk is fast enough */
    PART_COPY,     /* of a batch to a device, unless another part overlaps it */
    PART_FORWARD,  /* including the gradient of the loss */
    PART_BACKWARD, /* sums over the ranks may overlap with it */
    PART_REDUCE,   /* waiting for the sums over the ranks */
    PART_UPDATE,   /* the optimizer */
    PART_MEET,     /* waiting for the result of a step, if the device is asynchronous */
    PART_EVALUATE, /* between steps, like the parts below */
    PART_SAVE,     /* checkpoints: the copy, and waiting for the previous one */
    PART_PEERS,    /* waiting for the other ranks: in evaluations, at checkpoints, at the end of an epoch */
    PART_COUNT
};

/* "data_wait", "copy", "forward", "backward", "reduce", "optimizer", "meet", "evaluation", "save", "peers" */
extern const char *const step_part_name[PART_COUNT];

struct step_times {
    double seconds[PART_COUNT];
    double cpu[PART_COUNT]; /* CPU seconds of all threads of the process; 0 for parts that a device times */
};

/* Add t to a sum. */
void step_times_add(struct step_times *sum, const struct step_times *t);

#endif
