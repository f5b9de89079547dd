/*
 * checkpoint_fixture.h - a run of densenet-micro with numbers of its own in every array, and its folder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_CHECKPOINT_FIXTURE_H
#define CHEX_TESTS_CHECKPOINT_FIXTURE_H

#include "checkpoint/checkpoint.h"

struct saved_run {
    struct graph *g;
    struct folder folder;
    struct checkpoint_arrays a;
    struct checkpoint_state state;
};

/* first, and then numbers that rise by 2^-12; free() */
float *saved_array(size_t count, float first);
void saved_run_make(struct saved_run *r);
void saved_run_release(struct saved_run *r);
/* A checkpoint of this step; all but the newest `keep` go. */
void saved_run_save(struct saved_run *r, uint64_t step, unsigned keep);
void saved_arrays_free(struct checkpoint_arrays *a);

#endif
