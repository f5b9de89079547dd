/*
 * ranges_none.c - empty functions for a build without NVTX
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/ranges.h"

void
ranges_open(int rank)
{
    (void)rank;
}

void
ranges_push(enum step_part part)
{
    (void)part;
}

void
ranges_push_step(uint64_t step)
{
    (void)step;
}

void
ranges_pop(void)
{
}
