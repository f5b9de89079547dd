/*
 * evaluate_fixture.h - a data set and a network whose logits are known, for the tests of evaluate.h
 *
 * The network is a stub.  Finding k of an image has the logit (v - 100) / 50 - k / 10, where v is the first pixel of
 * the crop (the last pixel of the row if the crop is mirrored).  Image i of the data set has the pixels i * 20 + x + y
 * (small_dataset.h), and image 5 is constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_EVALUATE_FIXTURE_H
#define CHEX_TESTS_EVALUATE_FIXTURE_H

#include "unit.h"

#include "eval/evaluate.h"
#include "lib/dataset/small_dataset.h"

enum { SIDE = 6, IMAGES = 6, FINDINGS = 14 };

struct stub_flight {
    float *made, *logits;
    unsigned views;
};

struct stub {
    unsigned batch;
    bool breaks; /* image 2 gets logits that are not finite */
    atomic_bool *stop;
    unsigned passes, stop_after;
    unsigned started, finished, most;   /* micro-batches; most: the largest number in flight */
    unsigned fails_start, fails_finish; /* this call from 1 on fails; 0: none */
    struct stub_flight flight[SCORES_IN_FLIGHT];
};

struct scorer {
    struct small_dataset small;
    struct chex_dataset *ds;
    struct samples samples;
    struct stub stub;
    struct evaluate_options o;
    struct evaluation e;
};

void scorer_make(struct scorer *b);
void scorer_release(struct scorer *b);
/* Runs evaluate(), which must succeed. */
void scorer_run(struct scorer *b);
/* Flips a bit in the pixels of a record. */
void scorer_damage(struct scorer *b, unsigned shard, unsigned record);

#endif
