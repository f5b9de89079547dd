/*
 * checkpoint_fixture.h - a run of densenet-micro with different numbers in every array, and its folder
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

/* Returns an array that starts with `first` and rises by 2^-12; free() it. */
float *saved_array(size_t count, float first);
void saved_run_make(struct saved_run *r);
void saved_run_release(struct saved_run *r);
/* Saves a checkpoint of this step; only the newest `keep` remain. */
void saved_run_save(struct saved_run *r, uint64_t step, unsigned keep);
void saved_arrays_free(struct checkpoint_arrays *a);

#endif
