/*
 * step_parts.h - the parts of a step whose time is measured: for the progress line, run_log.h, trace.h and prometheus.h
 *
 * Seconds of wall time of rank 0, of its main thread or of its device.  What is left of a step, its bookkeeping, is no
 * part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STEP_PARTS_H
#define CHEX_TRAIN_STEP_PARTS_H

enum step_part {
    PART_WAIT,     /* for the loader: 0 where the disk keeps up */
    PART_FORWARD,  /* with copying the batch to a device */
    PART_BACKWARD, /* sums over the ranks may run meanwhile */
    PART_REDUCE,   /* waiting for the sums over the ranks */
    PART_UPDATE,   /* the optimizer */
    PART_MEET,     /* waiting for what came of a step, where a device is behind */
    PART_SAVE,     /* waiting for checkpoints: their copy, and the one before */
    PART_COUNT
};

/* "data_wait", "forward", "backward", "reduce", "optimizer", "meet", "save" */
extern const char *const step_part_name[PART_COUNT];

struct step_times {
    double seconds[PART_COUNT];
};

#endif
