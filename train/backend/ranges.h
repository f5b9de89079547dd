/*
 * ranges.h - marks the activities of this rank as NVTX ranges, for Nsight and other tools
 *
 * Ranges have the names of the parts of a step (step_parts.h), and "step", with the number of the step as payload.
 * They nest per thread:
 *     step            giving a step to the plan: images and launches; with host memory all of it
 *       data_wait     waiting for the loader
 *       copy, forward, backward, reduce, optimizer
 *                     the host computes these, or launches their kernels into a stream: with a graph once, during
 *                     capture; without one (--no-graph) in each step
 *     meet            waiting for the result of a step
 *     evaluation, save
 * Each rank has its own domain, "chex-train rank 3".  Without a tool a range costs a few nanoseconds.
 *
 * ranges_nvtx.c uses NVTX, a header-only library.  A build without NVTX uses ranges_none.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANGES_H
#define CHEX_TRAIN_RANGES_H

#include "backend/step_parts.h"

#include <stdint.h>

/* Name the domain, before a second thread starts; earlier ranges are dropped. */
void ranges_open(int rank);
void ranges_push(enum step_part part);
void ranges_push_step(uint64_t step);
void ranges_pop(void);

#endif
