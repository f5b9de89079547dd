/*
 * evaluate_fixture.h - a data set and a network whose logits can be told by hand, for the tests of evaluate.h
 *
 * The network is a stub: finding k of an image has the logit (v - 100) / 50 - k / 10, with v the first pixel of the
 * crop that it is shown (the last of the row where that is mirrored).  Image i of the data set has the pixels i * 20 +
 * x + y (small_dataset.h), 5 is constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_EVALUATE_FIXTURE_H
#define CHEX_TESTS_EVALUATE_FIXTURE_H

#include "unit.h"

#include "eval/evaluate.h"
#include "small_dataset.h"

enum { SIDE = 6, IMAGES = 6 };

struct stub {
    unsigned batch;
    bool breaks; /* the logits of image 2 */
    atomic_bool *stop;
    unsigned passes, stop_after;
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
/* evaluate() must end well. */
void scorer_run(struct scorer *b);
/* Flip a bit in the pixels of a record. */
void scorer_damage(struct scorer *b, unsigned shard, unsigned record);

#endif
