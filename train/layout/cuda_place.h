/*
 * cuda_place.h - a layout as the model of its launches (train/roof) wants to know it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLACE_H
#define CHEX_CUDA_PLACE_H

#include "layout/cuda_layout.h"
#include "roof/seconds.h"

/* What arguments of the layout's launches do not say; as long as it lives. */
struct cuda_place cuda_place_of(const struct cuda_layout *l);

#endif
