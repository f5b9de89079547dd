/*
 * ranges.h - what this rank does, as ranges of NVTX: for Nsight, or whoever else injects a library to hear of them
 *
 * Ranges have the names of the parts of a step (step_parts.h), and "step", with the number of the step as payload.
 * They nest, on each thread, in the order in which they were pushed:
 *     step            giving a step to the plan: its images, its launches; with host memory all of it
 *       data_wait     of these: waiting for the loader
 *       copy, forward, backward, reduce, optimizer
 *                     where the host computes them, or puts their launches into a stream; with a graph that is once,
 *                     when it is recorded, and without one (--no-graph) in each step
 *     meet            waiting for the result of a step
 *     evaluation, save
 * Each rank has a domain of its own, "chex-train rank 3".  Where no tool listens a range costs a few nanoseconds.
 *
 * ranges_nvtx.c is NVTX, whose header is all of it; in a build without that ranges_none.c stands in its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANGES_H
#define CHEX_TRAIN_RANGES_H

#include "backend/step_parts.h"

#include <stdint.h>

/* Name the domain, before there is a second thread; ranges before that are told to nobody. */
void ranges_open(int rank);
void ranges_push(enum step_part part);
void ranges_push_step(uint64_t step);
void ranges_pop(void);

#endif
