/*
 * place.h - what the cost model (cost.h) needs to know of a layout
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_PLACE_H
#define CHEX_CUDA_PLAN_PLACE_H

#include "cuda/plan/cost_seconds.h"
#include "cuda/plan/layout.h"

/* What arguments of the layout's launches do not say; as long as it lives. */
struct cuda_place cuda_place_of(const struct cuda_layout *l);

#endif
