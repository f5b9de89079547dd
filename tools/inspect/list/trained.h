/*
 * trained.h - list --trained-on: when a run trained on the selected images, and which of its checkpoints did
 *
 * The order of an epoch is a pure function of the seed and the epoch (data/order.h), so no log is needed: the newest
 * checkpoint of the run has the seed, the size of a step and the number of steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_TRAINED_H
#define CHEX_TOOLS_INSPECT_TRAINED_H

#include "inspect/inspect.h"

int inspect_trained_on(struct inspect *in, struct target *t);

#endif
